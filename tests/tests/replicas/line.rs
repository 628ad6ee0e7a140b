//! A line between a controller and a server of etcd, which a test changes or holds up.

use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::{Condvar, Mutex};

/// A change of what the server sends.
pub(crate) type Change = fn(&mut [u8]);

/// A line to a server. Its threads end with the process of the test.
pub(crate) struct Line {
    address: SocketAddr,
    gate: Arc<Gate>,
}

/// The point that all bytes of a line pass, in both directions.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    /// True while no further connections are made.
    turns_away: AtomicBool,
}

impl Line {
    /// Makes a line to a server, `HOST:PORT`.
    pub(crate) fn to(server: &str, change: Change) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let line = Self { address: listener.local_addr()?, gate: Arc::default() };
        let (server, gate) = (server.to_owned(), Arc::clone(&line.gate));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if gate.turns_away.load(Ordering::SeqCst) {
                    continue;
                }
                // Of a server that has ended, the client sees a connection that ends.
                let _ = connect(client, &server, change, &gate);
            }
        });
        Ok(line)
    }

    /// Returns the place of a log behind the line.
    pub(crate) fn url(&self) -> String {
        format!("etcd://{}/periapt", self.address)
    }

    /// Closes further connections at once. Those that there are stay.
    pub(crate) fn turn_away(&self) {
        self.gate.turns_away.store(true, Ordering::SeqCst);
    }

    /// Lets further connections through again.
    pub(crate) fn let_through(&self) {
        self.gate.turns_away.store(false, Ordering::SeqCst);
    }

    /// Holds up all bytes. Connections stay.
    pub(crate) fn hold(&self) {
        *self.gate.is_closed.lock() = true;
    }

    /// Lets the bytes pass that were held up, and all later ones.
    pub(crate) fn release(&self) {
        *self.gate.is_closed.lock() = false;
        self.gate.opened.notify_all();
    }
}

/// Connects a client with the server.
fn connect(client: TcpStream, server: &str, change: Change, gate: &Arc<Gate>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let (there, back) = (Arc::clone(gate), Arc::clone(gate));
    thread::spawn(move || there.pass(from_client, server, |_| {}));
    thread::spawn(move || back.pass(from_server, client, change));
    Ok(())
}

impl Gate {
    /// Passes bytes on, until one of the two ends.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, change: Change) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer)
            && let Some(bytes) = buffer.get_mut(..length)
        {
            change(bytes);
            let mut is_closed = self.is_closed.lock();
            self.opened.wait_while(&mut is_closed, |is_closed| *is_closed);
            drop(is_closed);
            if to.write_all(bytes).is_err() {
                break;
            }
        }
        // Each may be closed already.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
