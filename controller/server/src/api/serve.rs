//! Connections: HTTP/2 for Periapt's own clients, HTTP/1.1 for `curl`, over TLS or on the controller's socket. Each is
//! bounded in its open requests and in its idle time, and is drained when the controller stops.

mod accept;
mod answers;
mod known;
mod metered;
mod protocol;
mod stream_tasks;

use std::{
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
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, fmt::rfc2822::DateTimePrinter};
use periapt_host_api::Timestamp;
use tokio::{sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::{
    api::connection::{ConnectionIdentity, Peer},
    bounds::{Connections, PatientStream},
    enrolled::Enrolled,
};
pub(crate) use accept::Listener;
use accept::{Accepted, Stream};
use answers::{Answers, ConnectionState};
pub(crate) use known::KnownCaller;
use metered::Metered;
use protocol::{FIRST_REQUEST_WITHIN, Protocols};

/// The most connections to one listener at a time; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 1_024;
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
    let protocols = Arc::new(Protocols::new());
    let mut parts = JoinSet::new();
    for listener in listeners {
        let (protocols, router, enrolled) = (Arc::clone(&protocols), router.clone(), enrolled.clone());
        parts.spawn(listen(listener, protocols, router, enrolled, stop.clone(), timeouts));
    }
    while parts.join_next().await.is_some() {}
}

/// Serves the connections of one listener. Those of other listeners do not take its permits.
async fn listen(
    listener: Listener,
    protocols: Arc<Protocols>,
    router: Router,
    enrolled: Enrolled,
    stop: CancellationToken,
    timeouts: ConnectionTimeouts,
) {
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let counted = Connections::default();
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
        let Ok(of_network) = accepted.permit(&counted) else {
            // Closed at once: a caller with so many connections will notice.
            tracing::debug!("closed a connection of a network that has all its connections");
            continue;
        };
        let (protocols, router, counted) = (Arc::clone(&protocols), router.clone(), counted.clone());
        let (enrolled, stop) = (enrolled.clone(), stop.clone());
        tasks.spawn(async move {
            identified(&protocols, accepted, counted, router, enrolled, stop, timeouts.stall).await;
            drop((of_network, permit));
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
    protocols: &Protocols,
    accepted: Accepted,
    counted: Connections,
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
    let known = KnownCaller::new(&peer, counted);
    let certificate = match peer.identity.clone() {
        ConnectionIdentity::Tls(Some(certificate)) => certificate,
        ConnectionIdentity::Controller(certificate) => {
            tokio::select! {
                () = connection(protocols, stream, peer, known, router, stop, stall) => {}
                () = expired(certificate.until) => {
                    let member = certificate.member;
                    tracing::debug!(%member, "closed a connection whose certificate has expired");
                }
            }
            return;
        }
        ConnectionIdentity::Tls(None) | ConnectionIdentity::Socket | ConnectionIdentity::InProcess => {
            return connection(protocols, stream, peer, known, router, stop, stall).await;
        }
    };
    let agent = &certificate.agent;
    tokio::select! {
        () = connection(protocols, stream, peer, known, router, stop, stall) => {}
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
    protocols: &Protocols,
    stream: Box<dyn Stream>,
    peer: Peer,
    known: KnownCaller,
    router: Router,
    stop: CancellationToken,
    stall: Duration,
) {
    let (asked, answers) = (Arc::new(AtomicBool::new(false)), Answers::new());
    let (has_asked, opened, of) = (Arc::clone(&asked), answers.clone(), peer.clone());
    let noting = known.clone();
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(of.clone());
        request.extensions_mut().insert(noting.clone());
        // Boxed, so that its memory is free while a stream's body is sent, which lasts as long as its caller watches.
        let (open, answer) = (opened.open(), Box::pin(router.clone().oneshot(request.map(Body::new))));
        async move {
            answer.await.map(|response| {
                let patient = response.extensions().get::<PatientStream>().cloned();
                dated(response.map(|body| open.answer(body, patient)))
            })
        }
    });
    let mut unwanted = pin!(known.unwanted(stall / LOOKS));
    let mut serving = pin!(protocols.of(&peer).serve_connection(TokioIo::new(Metered::new(stream)), service));
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
            reason = &mut unwanted => {
                tracing::debug!(%peer, %reason, "closed a connection");
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
