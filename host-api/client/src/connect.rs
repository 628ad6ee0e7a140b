//! An attempt to connect to one address, and the HTTP/2 handshake.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use periapt_host_api::{
    api::MAX_STREAMS,
    timing::{KEEP_ALIVE, PEER_CONNECT_WITHIN, PEER_PING_EVERY, PEER_PING_WITHIN},
};

use crate::{
    Attempt, AttemptError,
    dial::{DialError, Dialler},
    error::chain,
    peer::Peer,
};

/// The body of a request.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The bytes of one response that may wait unread; enough to receive a blob at a disk's speed.
const STREAM_WINDOW: u32 = 256 * 1024;
/// The windows of all streams together, so that a stream without a reader blocks no other.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS;
/// The longest time to open a connection, except in a first round over several addresses.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// The times of an attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Leaves an address early if there are others.
    Quick,
    /// Gives each address the time that a single one has.
    Slow,
}

/// Opens a connection to an address. Where there are alternatives, a peer that falls silent is soon left for one of them.
pub(crate) async fn connect(
    dialler: &Dialler,
    alternatives: usize,
    pace: Pace,
) -> std::result::Result<http2::SendRequest<Body>, ConnectError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    match alternatives {
        0 => {
            builder.keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(KEEP_ALIVE).keep_alive_while_idle(true)
        }
        // An idle connection has nobody who waits: the ping is sent with the next request.
        _ => builder
            .keep_alive_interval(PEER_PING_EVERY)
            .keep_alive_timeout(PEER_PING_WITHIN)
            .keep_alive_while_idle(false),
    };
    let within = match (alternatives, pace) {
        (1.., Pace::Quick) => PEER_CONNECT_WITHIN,
        _ => CONNECT_WITHIN,
    };
    let connect = async {
        let stream = dialler.dial().await?;
        Ok::<_, ConnectError>(builder.handshake(TokioIo::new(stream)).await?)
    };
    let connected = tokio::time::timeout(within, connect).await;
    let (sender, connection) = connected.map_err(|_| ConnectError::TooLate(within))??;
    // The task ends after the last sender and the last stream, or with the peer.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = chain(&error), "connection to the controller ended");
        }
    });
    Ok(sender)
}

/// The reason for a missing connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// There is no connection.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The server does not speak HTTP/2.
    #[error("{}", chain(.0))]
    Handshake(#[from] hyper::Error),
    /// The server does not answer.
    #[error("no connection within {} s", .0.as_secs())]
    TooLate(Duration),
}

impl ConnectError {
    /// Returns true if another attempt may succeed by itself.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_temporary(),
            Self::Handshake(_) | Self::TooLate(_) => true,
        }
    }

    /// Returns true if the server may need more time than it was given.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self, Self::TooLate(within) if *within < CONNECT_WITHIN)
    }

    /// Returns the failed attempt as callers see it.
    pub(crate) fn of(self, peer: &Peer) -> Attempt {
        let reason = match self {
            Self::Dial(DialError::Tls(reason)) => AttemptError::NotTrusted(reason),
            other => AttemptError::NoAnswer(other.to_string()),
        };
        Attempt { url: peer.to_string(), reason }
    }
}
