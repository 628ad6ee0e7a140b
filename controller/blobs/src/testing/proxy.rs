//! A proxy before a server of S3: it counts requests, and answers some of them as a test says.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::Client, client::legacy::connect::HttpConnector, rt::TokioExecutor, rt::TokioIo,
};
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsAcceptor;

/// The most bytes of a body that the proxy takes.
const MAX_BODY: usize = 64 << 20;

/// The length that an endless body is said to have, in bytes: a petabyte.
const ENDLESS: u64 = 1 << 50;

/// The fault that a request meets, instead of being passed on as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Fault {
    /// An answer 503 with the code `SlowDown`.
    Busy,
    /// An answer 403 with the code `AccessDenied`.
    Denied,
    /// A connection that breaks in the middle of the answer's body.
    CutShort,
    /// An answer with one other byte in its body.
    WrongBytes,
    /// An object whose body never ends, unless the client ends it. Lists are passed on.
    Endless,
    /// No answer at all.
    Silent,
}

#[derive(Debug, Default)]
struct State {
    /// The fault of requests with this method, and how many of them it still meets.
    faults: Vec<(Method, S3Fault, usize)>,
    requests: Vec<(Method, String)>,
}

/// A proxy. It ends with the value.
#[derive(Debug)]
pub struct Proxy {
    url: String,
    state: Arc<Mutex<State>>,
    running: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy before a server, with TLS if it is given a certificate for it.
    ///
    /// # Panics
    /// Panics if no port can be listened on.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub async fn before(server: &str, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let running =
            tokio::spawn(run(listener, server.to_owned(), tls.map(TlsAcceptor::from), Arc::clone(&state)));
        Self { url, state, running }
    }

    /// Returns the proxy's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Lets the next requests with this method fail.
    pub fn fail(&self, method: Method, fault: S3Fault, times: usize) {
        self.state.lock().faults.push((method, fault, times));
    }

    /// Passes all requests on again.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// Returns the number of requests with this method whose path and query contain a text, and forgets all.
    pub fn take_count(&self, method: &Method, text: &str) -> usize {
        let requests = std::mem::take(&mut self.state.lock().requests);
        requests.iter().filter(|(of, path)| of == method && path.contains(text)).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.running.abort();
    }
}

type Body = BoxBody<Bytes, std::io::Error>;

async fn run(listener: TcpListener, server: String, tls: Option<TlsAcceptor>, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (server, tls, state) = (server.clone(), tls.clone(), Arc::clone(&state));
        connections.spawn(async move {
            match tls {
                None => serve(socket, server, state).await,
                // A client that does not trust it leaves.
                Some(tls) => {
                    if let Ok(socket) = tls.accept(socket).await {
                        serve(socket, server, state).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    server: String,
    state: Arc<Mutex<State>>,
) {
    let client = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
    let service = service_fn(move |request| {
        let (client, server, state) = (client.clone(), server.clone(), Arc::clone(&state));
        async move { Ok::<_, Infallible>(answer(request, client, &server, &state).await) }
    });
    // The client closes the connection, or a fault breaks it.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(
    request: Request<Incoming>,
    client: Client<HttpConnector, Full<Bytes>>,
    server: &str,
    state: &Mutex<State>,
) -> Response<Body> {
    let path = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let fault = {
        let mut state = state.lock();
        state.requests.push((request.method().clone(), path.clone()));
        let is_list = path.contains("list-type");
        let meets = |fault: &S3Fault| !(*fault == S3Fault::Endless && is_list);
        let mut faults = state.faults.iter_mut();
        let met =
            faults.find(|(method, fault, left)| method == request.method() && *left > 0 && meets(fault));
        met.map(|(_, fault, left)| {
            *left -= 1;
            *fault
        })
    };
    match fault {
        Some(S3Fault::Busy) => return refusal(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
        Some(S3Fault::Denied) => return refusal(StatusCode::FORBIDDEN, "AccessDenied"),
        Some(S3Fault::Silent) => std::future::pending::<()>().await,
        Some(S3Fault::CutShort | S3Fault::WrongBytes | S3Fault::Endless) | None => {}
    }
    let passed = async {
        let (mut head, body) = request.into_parts();
        head.uri = format!("{server}{path}").parse()?;
        let body = http_body_util::Limited::new(body, MAX_BODY)
            .collect()
            .await
            .map_err(|error| anyhow::anyhow!(error))?;
        let answer = client.request(Request::from_parts(head, Full::new(body.to_bytes()))).await?;
        let (head, body) = answer.into_parts();
        anyhow::Ok((head, body.collect().await?.to_bytes()))
    };
    match passed.await {
        Err(error) => refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
        Ok((mut head, body)) => {
            if fault == Some(S3Fault::Endless) {
                head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(ENDLESS));
            }
            Response::from_parts(head, changed(body, fault))
        }
    }
}

fn changed(body: Bytes, fault: Option<S3Fault>) -> Body {
    match fault {
        Some(S3Fault::CutShort) => {
            let half = body.slice(..body.len() / 2);
            let pieces = stream::iter([Ok(Frame::data(half)), Err(std::io::Error::other("cut short"))]);
            http_body_util::BodyExt::boxed(StreamBody::new(pieces))
        }
        Some(S3Fault::WrongBytes) => {
            let mut wrong = body.to_vec();
            if let Some(byte) = wrong.last_mut() {
                *byte ^= 1;
            }
            whole(wrong.into())
        }
        Some(S3Fault::Endless) => {
            let pieces = stream::repeat_with(move || Ok(Frame::data(body.clone())));
            http_body_util::BodyExt::boxed(StreamBody::new(pieces))
        }
        _ => whole(body),
    }
}

fn whole(body: Bytes) -> Body {
    http_body_util::BodyExt::boxed(Full::new(body).map_err(|never| match never {}))
}

fn refusal(status: StatusCode, code: &str) -> Response<Body> {
    let text =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>by the proxy</Message></Error>");
    let mut response = Response::new(whole(text.into()));
    *response.status_mut() = status;
    response
}
