//! Connections: HTTP/2 for Periapt's own clients, HTTP/1.1 for `curl`, over TLS or on the controller's socket. Each is
//! bounded in its open requests and in its idle time, and is drained when the controller stops.

mod accept;
mod answers;

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use jiff::{SignedDuration, fmt::rfc2822::DateTimePrinter};
use periapt_host_api::{Timestamp, api::MAX_STREAMS, timing::KEEP_ALIVE};
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{
    api::connection::{ConnectionIdentity, Peer},
    bounds::Connections,
    enrolled::Enrolled,
};
pub(crate) use accept::Listener;
use accept::{Accepted, Stream};
use answers::{Answers, ConnectionState};

/// The most connections to one listener at a time; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 1_024;
/// The longest time until a connection's first request, after its handshake, which may take as long. It also bounds one
/// that sends half a preface.
const FIRST_REQUEST_WITHIN: Duration = Duration::from_secs(10);
/// The most unread bytes of one request's body.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The window of a connection: as much as all streams together, so that no stream blocks another.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS;
/// The most bytes of all headers of one request. Periapt's own have a few hundred.
const MAX_HEADERS: u32 = 16 * 1024;
/// The most pending resets that a peer has caused. It bounds a flood of cancelled requests.
const MAX_PENDING_RESETS: usize = 64;
/// The number of checks of a connection in its timeout.
const LOOKS: u32 = 4;
/// The interval of checks whether a connection's certificate has expired, by a clock that may be set meanwhile.
const EXPIRY_CHECKS: Duration = Duration::from_secs(60);
/// The pause after a failure to accept a connection (no file descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The timeouts of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionTimeouts {
    /// The time for requests in progress, once the controller stops.
    pub(crate) drain: Duration,
    /// The time after which a connection is closed whose caller sends no request, or does not read an answer.
    pub(crate) stall: Duration,
}

/// Serves until the controller stops, and then until requests in progress are finished, within bounds.
pub(crate) async fn serve(
    listeners: Vec<Listener>,
    router: Router,
    enrolled: Enrolled,
    stop: CancellationToken,
    timeouts: ConnectionTimeouts,
) {
    let builder = Arc::new(protocol());
    let mut parts = JoinSet::new();
    for listener in listeners {
        let (builder, router, enrolled) = (Arc::clone(&builder), router.clone(), enrolled.clone());
        parts.spawn(listen(listener, builder, router, enrolled, stop.clone(), timeouts));
    }
    while parts.join_next().await.is_some() {}
}

/// Serves the connections of one listener. Those of other listeners do not take its permits.
async fn listen(
    listener: Listener,
    builder: Arc<auto::Builder<TokioExecutor>>,
    router: Router,
    enrolled: Enrolled,
    stop: CancellationToken,
    timeouts: ConnectionTimeouts,
) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let networks = Connections::default();
    let mut tasks = JoinSet::new();
    loop {
        while tasks.try_join_next().is_some() {}
        let accepted = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            (permit, accepted) = accepted => match (permit, accepted) {
                (Ok(permit), Ok(accepted)) => (permit, accepted),
                (_, Err(error)) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
                (Err(_), _) => break,
            },
        };
        let Ok(share) = accepted.place(&networks) else {
            // Closed at once: a caller with so many connections will notice.
            tracing::debug!("closed a connection of a network that has all its connections");
            continue;
        };
        let (builder, router) = (Arc::clone(&builder), router.clone());
        let (enrolled, stop) = (enrolled.clone(), stop.clone());
        tasks.spawn(async move {
            identified(&builder, accepted, router, enrolled, stop, timeouts.stall).await;
            drop((share, permit));
        });
    }
    drop(listener);
    let drained = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(timeouts.drain, drained).await.is_err() {
        tracing::warn!("closed connections that did not end in time");
    }
    tasks.shutdown().await;
}

/// Finds out who connects, and serves the connection as long as its certificate is valid, if it shows one.
async fn identified(
    builder: &auto::Builder<TokioExecutor>,
    accepted: Accepted,
    router: Router,
    enrolled: Enrolled,
    stop: CancellationToken,
    stall: Duration,
) {
    let identified = tokio::select! {
        () = stop.cancelled() => return,
        identified = tokio::time::timeout(FIRST_REQUEST_WITHIN, accepted.identify()) => identified,
    };
    let (peer, stream) = match identified {
        Ok(Ok(identified)) => identified,
        Ok(Err(reason)) => return tracing::debug!(%reason, "closed a connection"),
        Err(_) => return tracing::debug!("closed a connection that did not finish its handshake"),
    };
    let ConnectionIdentity::Tls(Some(certificate)) = peer.identity.clone() else {
        return connection(builder, stream, peer, router, stop, stall).await;
    };
    let agent = &certificate.agent;
    tokio::select! {
        () = connection(builder, stream, peer, router, stop, stall) => {}
        () = enrolled.revoked(&certificate) => {
            tracing::info!(%agent, "closed a connection of an agent that was removed or has joined again");
        }
        () = expired(certificate.until) => {
            tracing::debug!(%agent, "closed a connection whose certificate has expired");
        }
    }
}

/// Waits until a certificate has expired.
async fn expired(until: Timestamp) {
    loop {
        let left = until.duration_since(Timestamp::now());
        if left <= SignedDuration::ZERO {
            return;
        }
        tokio::time::sleep(left.unsigned_abs().min(EXPIRY_CHECKS)).await;
    }
}

async fn connection(
    builder: &auto::Builder<TokioExecutor>,
    stream: Box<dyn Stream>,
    peer: Peer,
    router: Router,
    stop: CancellationToken,
    stall: Duration,
) {
    let (asked, answers) = (Arc::new(AtomicBool::new(false)), Answers::new());
    let (has_asked, opened, of) = (Arc::clone(&asked), answers.clone(), peer.clone());
    let served = Arc::new(AtomicBool::new(false));
    let is_served = Arc::clone(&served);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(of.clone());
        let (open, answer) = (opened.open(), router.clone().oneshot(request.map(Body::new)));
        let is_served = Arc::clone(&is_served);
        async move {
            let response = answer.await?;
            if response.status().is_success() {
                is_served.store(true, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(dated(response.map(|body| open.answer(body))))
        }
    });
    let mut stranger = pin!(async {
        tokio::time::sleep(stall / LOOKS).await;
        let is_local = !matches!(peer.identity, ConnectionIdentity::Tls(_));
        let is_known = is_local || served.load(Ordering::Relaxed);
        if is_known {
            std::future::pending::<()>().await;
        }
    });
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut silent = pin!(async {
        tokio::time::sleep(FIRST_REQUEST_WITHIN).await;
        if asked.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    });
    // Set once the connection was told to end after its requests. From then on it is only closed.
    let mut ending = false;
    loop {
        tokio::select! {
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, %peer, "connection ended");
                }
                return;
            }
            () = &mut silent => {
                tracing::debug!(%peer, "closed a connection without a request");
                return;
            }
            () = &mut stranger => {
                tracing::debug!(%peer, "closed a connection of which no request was granted");
                return;
            }
            () = stop.cancelled(), if !ending => {
                ending = true;
                serving.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep(stall / LOOKS) => match answers.look(stall) {
                ConnectionState::Alive => {}
                ConnectionState::Idle if !ending => {
                    ending = true;
                    serving.as_mut().graceful_shutdown();
                }
                ConnectionState::Idle => return,
                ConnectionState::Stalled => {
                    tracing::debug!(%peer, "closed a connection whose client reads no answers");
                    return;
                }
            },
        }
    }
}

/// Adds the date that HTTP requires. The HTTP library's own date panics before 1970, which the clock of a machine
/// without a battery may show.
fn dated(mut response: Response<Body>) -> Response<Body> {
    if let Ok(now) = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now())
        && let Ok(date) = HeaderValue::try_from(now)
    {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

fn protocol() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
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
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(STREAM_WINDOW as usize)
        .max_header_list_size(MAX_HEADERS)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}
