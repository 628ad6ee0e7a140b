//! HTTP's bounds for connections: HTTP/2 for Periapt's own clients, HTTP/1.1 for `curl`.

use std::time::Duration;

use hyper_util::{rt::TokioTimer, server::conn::auto};
use periapt_host_api::{api::MAX_STREAMS, timing::KEEP_ALIVE};

use super::stream_tasks::StreamTasks;
use crate::api::connection::{ConnectionIdentity, Peer};

/// The longest time until a connection's first request, after its handshake, which may take as long. It also bounds one
/// that sends half a preface.
pub(super) const FIRST_REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// The most concurrent streams of a connection that is neither an agent's nor local. A person's command line needs a
/// few. With the windows below, such a connection holds at most 8 MiB of unread requests.
const STREAMS_OF_USERS: u32 = 128;
/// The most unread bytes of one request's body.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The most bytes of all headers of one request. Periapt's own have a few hundred.
const MAX_HEADERS: u32 = 16 * 1024;
/// The most streams that a peer has reset and that the controller has not looked at yet. It bounds a flood of
/// cancelled requests.
const MAX_PENDING_RESETS: usize = 64;
/// The most streams that the controller resets since the peer breaks the protocol, before it closes the connection.
const MAX_ERRORS: usize = 64;

/// The protocols of connections. Cloning is not cheap.
pub(super) struct Protocols {
    /// For agents, and for callers on the same host.
    agents: auto::Builder<StreamTasks>,
    /// For all others.
    users: auto::Builder<StreamTasks>,
}

impl Protocols {
    pub(super) fn new() -> Self {
        Self { agents: with_streams(MAX_STREAMS), users: with_streams(STREAMS_OF_USERS) }
    }

    /// Returns the protocol of a connection.
    pub(super) fn of(&self, peer: &Peer) -> &auto::Builder<StreamTasks> {
        match peer.identity {
            ConnectionIdentity::Tls(None) => &self.users,
            ConnectionIdentity::Tls(Some(_))
            | ConnectionIdentity::Controller(_)
            | ConnectionIdentity::Socket
            | ConnectionIdentity::InProcess => &self.agents,
        }
    }
}

fn with_streams(streams: u32) -> auto::Builder<StreamTasks> {
    let mut builder = auto::Builder::new(StreamTasks);
    builder
        .http1()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_REQUEST_WITHIN)
        .max_buf_size(STREAM_WINDOW as usize);
    builder
        .http2()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        // As much as all streams together, so that no stream blocks another.
        .initial_connection_window_size(STREAM_WINDOW * streams)
        .max_concurrent_streams(streams)
        .max_send_buf_size(STREAM_WINDOW as usize)
        .max_header_list_size(MAX_HEADERS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERRORS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}
