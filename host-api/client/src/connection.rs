//! The single connection to the controller, opened on demand and replaced when it breaks.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use periapt_host_api::{Digest, api::MAX_STREAMS, timing::KEEP_ALIVE};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Backoff, ClientError, Options, RequestOutcome, Result,
    address::Address,
    dial::{DialError, Dialler},
    error::chain,
};

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
    dialler: Dialler,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    sender: http2::SendRequest<Body>,
    generation: u64,
}

/// A sender of one request, and the generation of its connection.
pub(crate) struct RequestSender {
    pub(crate) sender: http2::SendRequest<Body>,
    pub(crate) generation: u64,
}

impl Client {
    /// Creates a client without connecting. Fails only for a URL that no controller can have, or without an authority
    /// to trust.
    pub fn new(options: Options) -> Result<Self> {
        let invalid = |reason: String| ClientError::InvalidUrl { url: options.url.clone(), reason };
        let address = Address::parse(&options.url).map_err(|error| invalid(error.to_string()))?;
        let dialler = Dialler::new(address, options.trust.as_ref(), &options.certificate);
        let dialler = dialler.map_err(|error| invalid(error.to_string()))?;
        Ok(Self { shared: Arc::new(Shared { options, dialler, open: Mutex::new(None) }) })
    }

    /// Returns the client's options.
    pub fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn address(&self) -> &Address {
        self.shared.dialler.address()
    }

    /// Opens a new connection for requests from now on, such as after the client's certificate was replaced. Requests
    /// in progress stay on the old one.
    pub async fn reconnect(&self) {
        *self.shared.open.lock().await = None;
    }

    /// Returns the open connection, or a new one if none is open or the open one is `broken`. Retries for as long as
    /// the options allow; concurrent callers share the attempt.
    pub(crate) async fn request_sender(&self, broken: Option<u64>) -> Result<RequestSender> {
        let began = Instant::now();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let mut open = self.shared.open.lock().await;
            let generation = match &*open {
                Some(known) if !known.sender.is_closed() && broken != Some(known.generation) => {
                    return Ok(RequestSender { sender: known.sender.clone(), generation: known.generation });
                }
                Some(known) => known.generation.wrapping_add(1),
                None => broken.map_or(0, |broken| broken.wrapping_add(1)),
            };
            let reason = match self.connect().await {
                Ok(sender) => {
                    *open = Some(Open { sender: sender.clone(), generation });
                    return Ok(RequestSender { sender, generation });
                }
                Err(reason) => reason,
            };
            drop(open);
            let wait = backoff.failed();
            let in_time = began.elapsed() + wait <= self.shared.options.retry_timeout;
            if !in_time || !reason.is_temporary() {
                return Err(self.not_connected(&reason));
            }
            tracing::debug!(url = self.shared.options.url, %reason, "controller does not answer; trying again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn connect(&self) -> std::result::Result<http2::SendRequest<Body>, ConnectError> {
        let connect = async {
            let stream = self.shared.dialler.dial().await?;
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

    fn not_connected(&self, reason: &ConnectError) -> ClientError {
        match reason {
            ConnectError::Dial(DialError::Tls(reason)) => {
                ClientError::NotTrusted { url: self.shared.options.url.clone(), reason: reason.clone() }
            }
            other => self.unreachable(other.to_string(), RequestOutcome::NothingHappened),
        }
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
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The server does not speak HTTP/2.
    #[error("{}", chain(.0))]
    Handshake(#[from] hyper::Error),
    /// The server does not answer.
    #[error("no connection within {} s", CONNECT_WITHIN.as_secs())]
    TooLate,
}

impl ConnectError {
    /// Returns true if another attempt may succeed by itself.
    fn is_temporary(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_temporary(),
            Self::Handshake(_) | Self::TooLate => true,
        }
    }
}
