//! A listener that answers `GET /metrics`, and nothing else.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::metrics::CONTENT_TYPE;

/// The most scrapers that are answered at a time.
const CONNECTIONS: usize = 16;
/// The longest time of a connection: a scraper asks again later.
const CONNECTION_LASTS: Duration = Duration::from_secs(30);
/// The pause until the next attempt when the system has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers scrapes with the text of `render` until `stop` is cancelled.
pub async fn serve_metrics(listener: TcpListener, render: fn() -> String, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accepted => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        connections.spawn(async move {
            let service =
                service_fn(move |request| async move { Ok::<_, Infallible>(answer(&request, render)) });
            let mut protocol = http1::Builder::new();
            let connection =
                protocol.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
            // A scraper that is cut off asks again.
            let _ = tokio::time::timeout(CONNECTION_LASTS, connection).await;
            drop(permit);
        });
    }
    connections.shutdown().await;
}

fn answer(request: &Request<Incoming>, render: fn() -> String) -> Response<Full<Bytes>> {
    // A web page that an operator looks at must not read it.
    let status = match (request.uri().path(), request.method()) {
        _ if request.headers().contains_key(header::ORIGIN) => StatusCode::FORBIDDEN,
        ("/metrics", &Method::GET) => StatusCode::OK,
        ("/metrics", _) => StatusCode::METHOD_NOT_ALLOWED,
        _ => StatusCode::NOT_FOUND,
    };
    let text = if status == StatusCode::OK { render() } else { format!("{status}\n") };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
    response
}
