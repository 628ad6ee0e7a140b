//! A proxy between a client and the controller, which withholds answers and cuts connections.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// The treatment of a connection, from when it was opened on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// All bytes pass.
    All,
    /// Requests pass, answers do not.
    Requests,
    /// The connection is closed.
    Nothing,
}

/// A proxy of a controller. A connection that was cut stays so; new ones pass all.
pub(crate) struct CuttingProxy {
    pub(crate) url: String,
    passes: watch::Sender<Passes>,
    accepting: JoinHandle<()>,
}

impl CuttingProxy {
    pub(crate) async fn start(controller: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let passes = watch::Sender::new(Passes::All);
        let state = passes.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(controller).await else { continue };
                tokio::spawn(forward(client, server, state.subscribe()));
            }
        });
        Self { url, passes, accepting }
    }

    /// Withholds all answers on open connections from now on.
    pub(crate) fn withhold(&self) {
        self.passes.send_replace(Passes::Requests);
    }

    /// Closes the open connections. New ones pass all.
    pub(crate) fn cut(&self) {
        self.passes.send_replace(Passes::Nothing);
        self.passes.send_replace(Passes::All);
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Forwards a connection until it ends or is cut. A watch may miss that the connection was cut, but not that the state
/// changed after answers were withheld: it ends the connection, too.
async fn forward(mut client: TcpStream, mut server: TcpStream, mut passes: watch::Receiver<Passes>) {
    let (mut asked, mut answered) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    let mut withheld = false;
    loop {
        tokio::select! {
            changed = passes.changed() => match *passes.borrow_and_update() {
                Passes::Requests if changed.is_ok() => withheld = true,
                _ => return,
            },
            read = client.read(&mut asked) => match read {
                Ok(count @ 1..) => if server.write_all(&asked[..count]).await.is_err() { return },
                _ => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(count @ 1..) => {
                    if !withheld && client.write_all(&answered[..count]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}
