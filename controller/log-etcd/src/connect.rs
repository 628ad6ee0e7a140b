//! Connections to the members of etcd, with TLS by this repository's one provider.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use etcd_client::{Channel, Client, ConnectOptions, KvClient, LeaseClient, MaintenanceClient, WatchClient};
use http::Uri;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use periapt_transport::{ClientCertificate, Trust, client_config, web_client_config};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tonic::transport::Endpoint;

use crate::{Encryption, EtcdOptions, EtcdTls, OpenError};

/// The timeout of a connection's handshakes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval of pings, which find connections whose other end is gone. etcd closes connections that ping more often
/// than every five seconds.
const PING_EVERY: Duration = Duration::from_secs(6);

/// The most bytes of an answer: a page of entries, each of one MiB at most.
pub(crate) const ANSWER_LIMIT: usize = 48 << 20;

/// The bytes that a member may send before this client has read them. The default of 64 KiB makes large entries slow.
const WINDOW: u32 = 4 << 20;

/// The clients of one member of the cluster. Clones share one connection.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) kv: KvClient,
    pub(crate) lease: LeaseClient,
    pub(crate) maintenance: MaintenanceClient,
    pub(crate) watch: WatchClient,
    trouble: Trouble,
}

/// The last trouble with a connection.
#[derive(Clone, Default)]
struct Trouble(Arc<Mutex<Option<ConnectError>>>);

/// The reason why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// No connection on the network.
    Network(String),
    /// The handshake failed.
    Tls(String),
}

impl Member {
    /// Makes the clients of an endpoint; they connect when they are used.
    pub(crate) async fn new(endpoint: &str, tls: Option<Arc<ClientConfig>>) -> Result<Self, OpenError> {
        let trouble = Trouble::default();
        let (address, shared) = (endpoint.to_owned(), trouble.clone());
        let connector = tower::service_fn(move |_: Uri| {
            let (address, tls, trouble) = (address.clone(), tls.clone(), shared.clone());
            async move {
                let connected =
                    tokio::time::timeout(CONNECT_TIMEOUT, connect(&address, tls, trouble.clone()));
                let connected = connected.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
                if let Err(error) = &connected {
                    trouble.note(error);
                }
                connected.map(TokioIo::new)
            }
        });
        let wrong = |error: tonic::transport::Error| OpenError::Unreachable(format!("{endpoint}: {error}"));
        let channel = Endpoint::from_shared(format!("http://{endpoint}"))
            .map_err(wrong)?
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(Duration::from_secs(2))
            .connect_with_connector_lazy(connector);
        // A member without the cluster's leader then says so, also to those who watch.
        let options = ConnectOptions::new().with_require_leader(true);
        let client = Client::from_channel(Channel::Tonic(channel), Some(options))
            .await
            .map_err(|error| OpenError::Unreachable(format!("{endpoint}: {error}")))?;
        Ok(Self {
            kv: client.kv_client().max_decoding_message_size(ANSWER_LIMIT),
            lease: client.lease_client(),
            maintenance: client.maintenance_client(),
            watch: client.watch_client().max_decoding_message_size(ANSWER_LIMIT),
            trouble,
        })
    }

    /// Returns true if there was trouble with the connection.
    pub(crate) fn has_trouble(&self) -> bool {
        self.trouble.0.lock().is_some()
    }

    /// Returns the last trouble with the connection, and forgets it.
    pub(crate) fn take_trouble(&self) -> Option<ConnectError> {
        self.trouble.0.lock().take()
    }
}

/// Returns the configuration of TLS; none for connections without it.
pub(crate) fn tls(options: &EtcdOptions) -> Result<Option<Arc<ClientConfig>>, OpenError> {
    let wrong = |error: periapt_transport::CertificateError| OpenError::Tls(error.to_string());
    if let Some(EtcdTls { authority, identity }) = &options.tls {
        let shown = ClientCertificate::default();
        if let Some((certificate, key)) = identity {
            shown.set_pem(certificate, key).map_err(wrong)?;
        }
        return client_config(&Trust::Authority(authority.clone()), &shown).map_err(wrong).map(Some);
    }
    if options.url.encryption == Encryption::Plain {
        return Ok(None);
    }
    let mut config = ClientConfig::clone(&*web_client_config(None).map_err(wrong)?);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Some(Arc::new(config)))
}

async fn connect(
    endpoint: &str,
    tls: Option<Arc<ClientConfig>>,
    trouble: Trouble,
) -> io::Result<Noted<Box<dyn Stream>>> {
    let socket = TcpStream::connect(endpoint).await?;
    socket.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Noted { stream: Box::new(socket), trouble });
    };
    let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls).connect(name, socket).await?;
    Ok(Noted { stream: Box::new(stream), trouble })
}

impl Trouble {
    fn note(&self, error: &io::Error) {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        *self.0.lock() = Some(match tls {
            Some(tls) => ConnectError::Tls(in_words(tls)),
            None => ConnectError::Network(error.to_string()),
        });
    }
}

/// Returns the reason of a failed handshake.
fn in_words(error: &rustls::Error) -> String {
    use rustls::{CertificateError, Error};
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            "another authority than the one that was given has issued its certificate".to_owned()
        }
        Error::AlertReceived(alert) => format!("it refuses this controller's certificate ({alert:?})"),
        other => other.to_string(),
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection that notes the errors of reading: a member that refuses the client's certificate says so only after the
/// client's side of the handshake.
struct Noted<S> {
    stream: S,
    trouble: Trouble,
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.trouble.note(error);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
