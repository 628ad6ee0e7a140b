//! The connections of a server.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use periapt_helper::Stalling;
use periapt_sandbox::workload::{HttpWorkload, RequestFailure, ResponseBody};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::listener::Listener;

/// The connections at a time. Further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 512;

/// The time in which a client sends the head of a request, and for which an idle connection stays.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of a head, and of what is read ahead.
const MAX_BUFFER: usize = 64 << 10;

/// The time for which requests go on after the server was told to end: less than a pod waits before it kills.
const GRACE: Duration = Duration::from_secs(4);

/// The pause after a connection that could not be accepted, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The body of an answer: a guest's, or a line of the host's.
type AnswerBody = Either<ResponseBody, Full<Bytes>>;

/// Serves a listener until `cancel`, and lets the requests that run then end.
pub async fn serve(listener: Listener, workload: HttpWorkload, cancel: CancellationToken) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let accepted = tokio::select! {
            next = next => next,
            Some(_) = connections.join_next() => continue,
            () = cancel.cancelled() => break,
        };
        match accepted {
            (Ok(permit), Ok(stream)) => {
                let (workload, cancel) = (workload.clone(), cancel.clone());
                connections.spawn(async move {
                    serve_stream(stream, workload, cancel).await;
                    drop(permit);
                });
            }
            (_, Err(error)) => {
                tracing::warn!("cannot accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
            (Err(_), _) => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection. After `cancel`, its request has a moment to end.
pub async fn serve_stream<S>(stream: S, workload: HttpWorkload, cancel: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let answers = service_fn(move |request| {
        let workload = workload.clone();
        async move { Ok::<_, Infallible>(answer(&workload, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(Stalling::new(stream)), answers);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = cancel.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = served {
        tracing::debug!("a connection ended: {error}");
    }
}

async fn answer(workload: &HttpWorkload, request: Request<Incoming>) -> Response<AnswerBody> {
    match workload.handle(request).await {
        Ok(response) => response.map(Either::Left),
        Err(failure) => refused(&failure),
    }
}

/// Returns the response for a failure. Its reason is in the log: it is not the client's to know.
fn refused(failure: &RequestFailure) -> Response<AnswerBody> {
    let (status, text) = match failure {
        RequestFailure::Invalid(text) => (StatusCode::BAD_REQUEST, *text),
        RequestFailure::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        RequestFailure::Busy => (StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time"),
        RequestFailure::TimedOut(_) => (StatusCode::GATEWAY_TIMEOUT, "the workload took too long"),
        RequestFailure::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the workload failed"),
    };
    let mut response = Response::new(Either::Right(Full::from(format!("{text}\n"))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if *failure == RequestFailure::Busy {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
