//! Connections to an object store: HTTP/1.1 by this repository's own TLS, with a bound on each wait.

use std::{
    error::Error as _,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use http::Uri;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use periapt_transport::{HandshakeError, web_client_config};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::S3Error;

/// The most idle connections.
const IDLE: usize = 8;

/// The time after which an idle connection is closed. Servers close theirs after a minute or so.
const IDLE_FOR: Duration = Duration::from_secs(20);

/// The longest waits for an object store.
#[derive(Debug, Clone, Copy)]
pub struct S3Timeouts {
    /// The wait for a connection, with its handshake.
    pub connect: Duration,
    /// The wait for the beginning of an answer, with the time to send a part of 8 MiB.
    pub answer: Duration,
    /// The wait for the next piece of an answer.
    pub piece: Duration,
}

impl Default for S3Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(60),
            piece: Duration::from_secs(20),
        }
    }
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("{0}")]
    Network(String),
    #[error("{0}")]
    Tls(String),
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// The maker of clients.
#[derive(Debug)]
pub(crate) struct Connector {
    wire: Wire,
    timeouts: S3Timeouts,
}

impl Connector {
    pub(crate) fn new(authority: Option<&str>, timeouts: S3Timeouts) -> Result<Self, S3Error> {
        Ok(Self { wire: Wire { tls: web_client_config(authority)?, within: timeouts.connect }, timeouts })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_FOR)
            .pool_max_idle_per_host(IDLE)
            .build(self.wire.clone());
        Ok(HttpClient::new(Service { client, timeouts: self.timeouts }))
    }
}

#[derive(Debug)]
struct Service {
    client: Client<Wire, HttpRequestBody>,
    timeouts: S3Timeouts,
}

impl HttpService for Service {
    fn call<'life, 'made>(
        &'life self,
        request: HttpRequest,
    ) -> BoxFuture<'made, Result<HttpResponse, HttpError>>
    where
        'life: 'made,
        Self: 'made,
    {
        async move {
            let S3Timeouts { answer, piece, .. } = self.timeouts;
            let answered = tokio::time::timeout(answer, self.client.request(request)).await;
            let (head, body) =
                answered.map_err(|_| late(answer))?.map_err(|error| unanswered(&error))?.into_parts();
            let body = stream::unfold(Some(body), move |body| async move {
                let mut body = body?;
                match tokio::time::timeout(piece, body.frame()).await {
                    Err(_) => Some((Err(late(piece)), None)),
                    Ok(None) => None,
                    Ok(Some(Err(error))) => Some((Err(broken(&error)), None)),
                    Ok(Some(Ok(frame))) => {
                        let ends = body.is_end_stream();
                        let frame: Frame<Bytes> = frame;
                        Some((Ok(frame), (!ends).then_some(body)))
                    }
                }
            });
            // The library wants a body that threads share; its lock is never waited for.
            let body = HttpResponseBody::new(StreamBody::new(Shared(parking_lot::Mutex::new(body.boxed()))));
            Ok(HttpResponse::from_parts(head, body))
        }
        .boxed()
    }
}

/// A stream that is `Sync`, because it is only reached by its one owner.
struct Shared<T>(parking_lot::Mutex<stream::BoxStream<'static, T>>);

impl<T> futures_util::Stream for Shared<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.get_mut().poll_next_unpin(context)
    }
}

fn late(after: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, NoAnswer::Late(after))
}

fn broken(error: &hyper::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, NoAnswer::Broken(error.to_string()))
}

fn unanswered(error: &hyper_util::client::legacy::Error) -> HttpError {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<NoAnswer>() {
            let kind = match found {
                NoAnswer::Tls(_) => HttpErrorKind::Unknown,
                _ => HttpErrorKind::Connect,
            };
            return HttpError::new(kind, found.clone());
        }
        cause = inner.source();
    }
    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    HttpError::new(HttpErrorKind::Interrupted, NoAnswer::Broken(reason))
}

/// The maker of connections.
#[derive(Debug, Clone)]
struct Wire {
    tls: Arc<ClientConfig>,
    within: Duration,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// One connection.
struct Wired(TokioIo<Box<dyn Stream>>);

impl tower::Service<Uri> for Wire {
    type Response = Wired;
    type Error = NoAnswer;
    type Future = BoxFuture<'static, Result<Wired, NoAnswer>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { tls, within } = self.clone();
        async move {
            let connecting = tokio::time::timeout(within, connect(uri, tls)).await;
            Ok(Wired(TokioIo::new(connecting.map_err(|_| NoAnswer::Late(within))??)))
        }
        .boxed()
    }
}

async fn connect(uri: Uri, tls: Arc<ClientConfig>) -> Result<Box<dyn Stream>, NoAnswer> {
    let network = |error: io::Error| NoAnswer::Network(error.to_string());
    let is_https = uri.scheme_str() == Some("https");
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let socket = TcpStream::connect((host.as_str(), port)).await.map_err(network)?;
    socket.set_nodelay(true).map_err(network)?;
    if !is_https {
        return Ok(Box::new(socket));
    }
    let name = ServerName::try_from(host).map_err(|error| NoAnswer::Tls(error.to_string()))?;
    let connected = TlsConnector::from(tls).connect(name, socket).await.map_err(untrusted)?;
    Ok(Box::new(connected))
}

/// Returns the error of a failed handshake.
fn untrusted(error: io::Error) -> NoAnswer {
    let clock = |what: &str| format!("its certificate {what}: this host's clock or the store's is wrong");
    NoAnswer::Tls(match HandshakeError::of(&error) {
        None => return NoAnswer::Network(error.to_string()),
        Some(HandshakeError::OtherAuthority) => {
            "its certificate is of an authority that this host does not trust: --blobs-ca names one"
                .to_owned()
        }
        Some(HandshakeError::NotYetValid(_)) => clock("is not valid yet"),
        Some(HandshakeError::Expired(_)) => clock("has expired"),
        Some(HandshakeError::OtherName { names, .. }) => format!("its certificate is for {names}"),
        Some(HandshakeError::Refused(reason)) => reason,
        Some(HandshakeError::Protocol(reason)) => format!("it does not speak TLS 1.3 ({reason})"),
    })
}

impl Connection for Wired {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl hyper::rt::Read for Wired {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl hyper::rt::Write for Wired {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
