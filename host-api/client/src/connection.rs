//! The one connection, made when it is needed and made anew when it broke.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Uri, uri::Authority};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use periapt_host_api::{CharmDigest, api::MAX_STREAMS, timing::KEEP_ALIVE};
use tokio::{net::TcpStream, sync::Mutex, time::Instant};

use crate::{Backoff, ClientError, Options, Result, error::chain};

/// A request's body.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// How much of one answer may wait unread; enough for a blob to flow at the disk's speed.
const STREAM_WINDOW: u32 = 256 * 1024;
/// As much as all streams together, so that one that is not read holds up none of the others.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS;
/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The pauses between attempts to connect grow from this...
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// ... to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// A controller's API. Cloning is cheap, and all clones share one connection.
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

/// A way to send one request, and which connection it is on.
pub(crate) struct Lane {
    pub(crate) sender: http2::SendRequest<Body>,
    pub(crate) generation: u64,
}

impl Client {
    /// A client that has not connected yet. Fails only for a URL that no controller can have.
    pub fn new(options: Options) -> Result<Self> {
        let authority = authority_of(&options.url)
            .map_err(|reason| ClientError::InvalidUrl { url: options.url.clone(), reason })?;
        Ok(Self { shared: Arc::new(Shared { options, authority, open: Mutex::new(None) }) })
    }

    /// What it was made from.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.shared.authority
    }

    /// The open connection, or a new one. `broken` is one that the caller has found dead. Goes on trying as
    /// long as the options say; callers that come meanwhile share the attempt.
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
            if began.elapsed() + wait > self.shared.options.patience {
                return Err(self.unreachable(reason, false));
            }
            tracing::debug!(url = self.shared.options.url, %reason, "controller does not answer; trying again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn connect(&self) -> std::result::Result<http2::SendRequest<Body>, String> {
        let connect = async {
            let stream =
                TcpStream::connect(self.shared.authority.as_str()).await.map_err(|error| chain(&error))?;
            stream.set_nodelay(true).map_err(|error| chain(&error))?;
            http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .keep_alive_while_idle(true)
                .handshake(TokioIo::new(stream))
                .await
                .map_err(|error| chain(&error))
        };
        let (sender, connection) = tokio::time::timeout(CONNECT_WITHIN, connect)
            .await
            .map_err(|_| format!("no connection within {} s", CONNECT_WITHIN.as_secs()))??;
        // Ends by itself when the last sender and the last stream are gone, or the peer is.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(error = chain(&error), "connection to the controller ended");
            }
        });
        Ok(sender)
    }

    pub(crate) fn unreachable(&self, reason: impl Into<String>, may_have_happened: bool) -> ClientError {
        ClientError::Unreachable {
            url: self.shared.options.url.clone(),
            reason: reason.into(),
            may_have_happened,
        }
    }

    /// Content that is not what was asked for.
    pub(crate) fn damaged(&self, what: &'static str, expected: CharmDigest, got: CharmDigest) -> ClientError {
        ClientError::Damaged { url: self.shared.options.url.clone(), what, expected, got }
    }

    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Protocol { url: self.shared.options.url.clone(), reason: reason.into() }
    }
}

/// Host and port of a URL; the rest of it must be empty.
fn authority_of(url: &str) -> std::result::Result<Authority, String> {
    let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| error.to_string())?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("TLS is not offered yet; use http:// on this machine".into()),
        _ => return Err("it must start with http://".into()),
    }
    if !matches!(uri.path_and_query().map(|path| path.as_str()), None | Some("/")) {
        return Err("it must end after host and port".into());
    }
    let authority = uri.authority().ok_or("it names no host")?;
    if authority.port().is_none() {
        return Err("it names no port".into());
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
