//! The single connection to the controller, opened on demand and replaced when it breaks.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Uri, uri::Authority};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use periapt_host_api::{Digest, api::MAX_STREAMS, timing::KEEP_ALIVE};
use tokio::{net::TcpStream, sync::Mutex, time::Instant};

use crate::{Backoff, ClientError, Options, RequestOutcome, Result, error::chain};

/// The body of a request.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The bytes of one response that may wait unread; enough to receive a blob at a disk's speed.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The windows of all streams together, so that a stream without a reader blocks no other.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS;
/// The longest time to open a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The first pause between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A client of a controller's API. Cloning is cheap, and all clones share one connection.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: Options,
    authority: Authority,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    sender: http2::SendRequest<Body>,
    generation: u64,
}

/// A sender of one request, and the generation of its connection.
pub(crate) struct Lane {
    pub(crate) sender: http2::SendRequest<Body>,
    pub(crate) generation: u64,
}

impl Client {
    /// Creates a client without connecting. Fails only for a URL that no controller can have.
    pub fn new(options: Options) -> Result<Self> {
        let authority = authority_of(&options.url).map_err(|error| ClientError::InvalidUrl {
            url: options.url.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self { shared: Arc::new(Shared { options, authority, open: Mutex::new(None) }) })
    }

    /// Returns the client's options.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.shared.authority
    }

    /// Returns the open connection, or a new one if none is open or the open one is `broken`. Retries for as long as
    /// the options allow; concurrent callers share the attempt.
    pub(crate) async fn lane(&self, broken: Option<u64>) -> Result<Lane> {
        let began = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let mut open = self.shared.open.lock().await;
            let generation = match &*open {
                Some(known) if !known.sender.is_closed() && broken != Some(known.generation) => {
                    return Ok(Lane { sender: known.sender.clone(), generation: known.generation });
                }
                Some(known) => known.generation.wrapping_add(1),
                None => broken.map_or(0, |broken| broken.wrapping_add(1)),
            };
            let reason = match self.connect().await {
                Ok(sender) => {
                    *open = Some(Open { sender: sender.clone(), generation });
                    return Ok(Lane { sender, generation });
                }
                Err(reason) => reason,
            };
            drop(open);
            let wait = backoff.failed();
            if began.elapsed() + wait > self.shared.options.retry_timeout {
                return Err(self.unreachable(reason.to_string(), RequestOutcome::NothingHappened));
            }
            tracing::debug!(url = self.shared.options.url, %reason, "controller does not answer; trying again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn connect(&self) -> std::result::Result<http2::SendRequest<Body>, ConnectError> {
        let connect = async {
            let stream = TcpStream::connect(self.shared.authority.as_str()).await?;
            stream.set_nodelay(true)?;
            let handshake = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .keep_alive_while_idle(true)
                .handshake(TokioIo::new(stream));
            Ok::<_, ConnectError>(handshake.await?)
        };
        let connected = tokio::time::timeout(CONNECT_WITHIN, connect).await;
        let (sender, connection) = connected.map_err(|_| ConnectError::TooLate)??;
        // The task ends after the last sender and the last stream, or with the peer.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = chain(&error), "connection to the controller ended");
            }
        });
        Ok(sender)
    }

    pub(crate) fn unreachable(&self, reason: impl Into<String>, outcome: RequestOutcome) -> ClientError {
        ClientError::Unreachable { url: self.shared.options.url.clone(), reason: reason.into(), outcome }
    }

    /// Returns the error for content with an unexpected digest.
    pub(crate) fn damaged(&self, what: &'static str, expected: Digest, got: Digest) -> ClientError {
        ClientError::Damaged { url: self.shared.options.url.clone(), what, expected, got }
    }

    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Protocol { url: self.shared.options.url.clone(), reason: reason.into() }
    }
}

/// The reason for a missing connection.
#[derive(Debug, thiserror::Error)]
enum ConnectError {
    /// No server listens at the address, or the system has no sockets left.
    #[error("{}", chain(.0))]
    Socket(#[from] io::Error),
    /// The server does not speak HTTP/2.
    #[error("{}", chain(.0))]
    Handshake(#[from] hyper::Error),
    /// The server does not answer.
    #[error("no connection within {} s", CONNECT_WITHIN.as_secs())]
    TooLate,
}

/// The fault of a URL that no controller can have.
#[derive(Debug, thiserror::Error)]
enum UrlError {
    #[error(transparent)]
    NotAUrl(#[from] http::uri::InvalidUri),
    #[error("TLS is not offered yet; use http:// on this machine")]
    Tls,
    #[error("it must start with http://")]
    Scheme,
    #[error("it must end after host and port")]
    Path,
    #[error("it names no host")]
    Host,
    #[error("it names no port")]
    Port,
}

/// Returns the host and port of a URL, the rest of which must be empty.
fn authority_of(url: &str) -> std::result::Result<Authority, UrlError> {
    let uri: Uri = url.parse()?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(UrlError::Tls),
        _ => return Err(UrlError::Scheme),
    }
    if !matches!(uri.path_and_query().map(|path| path.as_str()), None | Some("/")) {
        return Err(UrlError::Path);
    }
    let authority = uri.authority().ok_or(UrlError::Host)?;
    if authority.port().is_none() {
        return Err(UrlError::Port);
    }
    Ok(authority.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn each_mistake_in_a_url_is_named() {
        for (url, reason) in [
            ("https://127.0.0.1:1", "TLS is not offered yet"),
            ("127.0.0.1:1", "it must start with http://"),
            ("http://127.0.0.1:1/v1", "it must end after host and port"),
            ("http://localhost", "it names no port"),
        ] {
            let error = Client::new(Options::new(url, Identity::Local)).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
        for url in ["http://127.0.0.1:1", "http://[::1]:17070/"] {
            assert!(Client::new(Options::new(url, Identity::Local)).is_ok(), "{url}");
        }
    }
}
