//! A line to a controller that leads, at which a test damages the snapshots that the controller sends to others.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Context as _;
use parking_lot::Mutex;
use periapt_host_api::Timestamp;
use periapt_tests::Installation;
use periapt_transport::{
    Authority, ClientCertificate, ServerCertificate, Trust, client_config, server_config,
};
use rustls::{ClientConfig, ServerConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Runtime,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The address of the line. The controller listens at another address of the host, with the same port.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The kind of HTTP/2's frames that carry the bytes of a body.
const DATA: u8 = 0;

/// The first bytes of compressed content, which stand behind the two lengths of a snapshot's part.
const COMPRESSED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The least bytes of a part that is damaged: those with entities and records have more.
const LARGE: usize = 256;

/// The damage to each large part of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// None.
    None,
    /// A bit of its content is flipped.
    Flip,
    /// It is left out.
    LeaveOut,
    /// The connection ends in its middle.
    Tear,
}

/// A line to a controller that leads. It ends with the value.
pub(crate) struct PeerLine {
    port: u16,
    listener: Mutex<Option<TcpListener>>,
    shared: Arc<Shared>,
    runtime: Runtime,
}

struct Shared {
    damage: Mutex<Damage>,
    /// True once the line reads what passes on connections that are made from then on.
    reads: AtomicBool,
}

/// The certificates of the line's two ends.
struct Ends {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl PeerLine {
    /// Makes a line, at a port that the controller is given.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let listener = loop {
            let listener = TcpListener::bind((ADDRESS, 0))?;
            // The controller needs the same port at the other address.
            if TcpListener::bind((Ipv4Addr::LOCALHOST, listener.local_addr()?.port())).is_ok() {
                break listener;
            }
        };
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let shared = Shared { damage: Mutex::new(Damage::None), reads: AtomicBool::new(false) };
        Ok(Self { port, listener: Mutex::new(Some(listener)), shared: Arc::new(shared), runtime })
    }

    /// Returns the words by which a controller listens behind the line, and tells others the line's address.
    pub(crate) fn words(&self) -> [String; 4] {
        let listen = format!("{}:{}", Ipv4Addr::LOCALHOST, self.port);
        ["--listen".to_owned(), listen, "--public-name".to_owned(), ADDRESS.to_string()]
    }

    /// Passes on all connections to the controller of a host. For those that the line reads, it proves to the controller to
    /// be a member of this name.
    pub(crate) fn serve(&self, host: &Installation, member: &str) -> anyhow::Result<()> {
        let (ends, shared) = (Arc::new(Ends::of(host, member)?), Arc::clone(&self.shared));
        let listener = self.listener.lock().take().context("the line serves already")?;
        let port = self.port;
        // A listener belongs to the runtime in which it is made.
        let entered = self.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        drop(entered);
        self.runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (ends, shared) = (Arc::clone(&ends), Arc::clone(&shared));
                tokio::spawn(async move {
                    // Of a controller that has ended, the caller sees a connection that ends.
                    let _ = connect(near, port, &ends, &shared).await;
                });
            }
        });
        Ok(())
    }

    /// Damages snapshots from now on, on connections that are made from the first call on.
    pub(crate) fn damage(&self, damage: Damage) {
        *self.shared.damage.lock() = damage;
        self.shared.reads.store(true, Ordering::SeqCst);
    }
}

impl Ends {
    /// Makes the certificates with the authority of a host's controller.
    fn of(host: &Installation, member: &str) -> anyhow::Result<Self> {
        let directory = host.path().join("data/controllers/local/controller");
        let read = |name: &str| fs::read_to_string(directory.join(name));
        let authority = Authority::from_pem(&read("ca.pem")?, &read("ca-key.pem")?)?;
        let (certificate, key) = authority.issue_server(&[ADDRESS.to_string().parse()?], Timestamp::now())?;
        let server = server_config(&ServerCertificate::new(&certificate, &key)?, authority.certificate())?;
        let (certificate, key) = authority.issue_controller(member, Timestamp::now())?;
        let shown = ClientCertificate::default();
        shown.set_pem(&certificate, &key)?;
        let client = client_config(&Trust::Authority(authority.certificate().to_owned()), &shown)?;
        Ok(Self { server, client })
    }
}

/// Connects a caller with the controller.
async fn connect(mut near: TcpStream, port: u16, ends: &Ends, shared: &Shared) -> io::Result<()> {
    let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    if !shared.reads.load(Ordering::SeqCst) {
        tokio::io::copy_bidirectional(&mut near, &mut far).await?;
        return Ok(());
    }
    let near = TlsAcceptor::from(Arc::clone(&ends.server)).accept(near).await?;
    let name = ServerName::from(Ipv4Addr::LOCALHOST);
    let far = TlsConnector::from(Arc::clone(&ends.client)).connect(name, far).await?;
    let (mut from_near, mut to_near) = tokio::io::split(near);
    let (mut from_far, mut to_far) = tokio::io::split(far);
    tokio::select! {
        passed = tokio::io::copy(&mut from_near, &mut to_far) => passed.map(drop),
        passed = pass_frames(&mut from_far, &mut to_near, &shared.damage) => passed,
    }
}

/// Passes on the frames that the controller sends, and damages those with large parts of snapshots.
async fn pass_frames(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    damage: &Mutex<Damage>,
) -> io::Result<()> {
    loop {
        let mut header = [0_u8; 9];
        from.read_exact(&mut header).await?;
        let [high, middle, low, kind, ..] = header;
        let length = usize::try_from(u32::from_be_bytes([0, high, middle, low])).unwrap_or_default();
        let mut payload = vec![0_u8; length];
        from.read_exact(&mut payload).await?;
        let is_part = kind == DATA && length >= LARGE && payload.get(8..12) == Some(COMPRESSED.as_slice());
        let damage = if is_part { *damage.lock() } else { Damage::None };
        match damage {
            Damage::None => {}
            Damage::Flip => {
                if let Some(byte) = payload.get_mut(length * 2 / 3) {
                    *byte ^= 0x40;
                }
            }
            Damage::LeaveOut => continue,
            Damage::Tear => payload.truncate(length / 2),
        }
        to.write_all(&header).await?;
        to.write_all(&payload).await?;
        to.flush().await?;
        if damage == Damage::Tear {
            return Ok(());
        }
    }
}
