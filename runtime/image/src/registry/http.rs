//! Requests to registries: HTTP/1.1 by this repository's own TLS, with a bound on each wait and each answer.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{
    Request, Response, Uri,
    body::Incoming,
    header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue, LOCATION, USER_AGENT},
};
use hyper_util::rt::TokioIo;
use periapt_transport::HandshakeError;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use super::{PlainHttp, PullError};

/// The most redirects of one request. Registries send one, to their store of blobs.
const MAX_REDIRECTS: usize = 5;

/// The maker of requests. Each has a connection of its own: an image has a few.
#[derive(Debug, Clone)]
pub(super) struct Client {
    tls: Arc<ClientConfig>,
    plain_http: PlainHttp,
    wait: Duration,
}

/// An answer whose body was not read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) head: hyper::http::response::Parts,
    body: Incoming,
    host: String,
    wait: Duration,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Client {
    pub(super) fn new(tls: Arc<ClientConfig>, plain_http: PlainHttp, wait: Duration) -> Self {
        Self { tls, plain_http, wait }
    }

    /// Returns the URL of a path of a registry. A registry on loopback has no TLS if that is allowed.
    pub(super) fn url(&self, host: &str, path: &str) -> Result<Uri, PullError> {
        let is_plain = self.plain_http == PlainHttp::OnLoopback && is_loopback(host);
        let scheme = if is_plain { "http" } else { "https" };
        let url = format!("{scheme}://{host}{path}").parse();
        url.map_err(|_| PullError::Options(format!("{host}{path} is no URL")))
    }

    /// Sends a request, and follows redirects. The authorization goes to the first host alone.
    pub(super) async fn get(
        &self,
        url: &Uri,
        accept: &[&str],
        authorization: Option<&HeaderValue>,
    ) -> Result<Answer, PullError> {
        let mut url = url.clone();
        let first = url.authority().cloned();
        for _ in 0..=MAX_REDIRECTS {
            let own = authorization.filter(|_| url.authority() == first.as_ref());
            let (answer, host) = self.once(&url, accept, own).await?;
            if !answer.status().is_redirection() {
                let (head, body) = answer.into_parts();
                return Ok(Answer { head, body, host, wait: self.wait });
            }
            let target = answer.headers().get(LOCATION).and_then(|target| target.to_str().ok());
            url = target.and_then(|target| joined(&url, target)).ok_or_else(|| PullError::Answer {
                host: host.clone(),
                reason: "it redirects to something that is no URL".into(),
            })?;
            self.check(&url)?;
        }
        let host = url.authority().map(ToString::to_string).unwrap_or_default();
        Err(PullError::Answer { host, reason: "it redirects again and again".into() })
    }

    /// Refuses URLs without TLS, unless they are on loopback and that is allowed.
    pub(super) fn check(&self, url: &Uri) -> Result<(), PullError> {
        let host = url.authority().map(ToString::to_string).unwrap_or_default();
        match url.scheme_str() {
            Some("https") => Ok(()),
            Some("http") if self.plain_http == PlainHttp::OnLoopback && is_loopback(&host) => Ok(()),
            _ => Err(PullError::Answer { host, reason: format!("it leads to {url}, which has no TLS") }),
        }
    }

    async fn once(
        &self,
        url: &Uri,
        accept: &[&str],
        authorization: Option<&HeaderValue>,
    ) -> Result<(Response<Incoming>, String), PullError> {
        let host = url.authority().map(ToString::to_string).unwrap_or_default();
        let unreachable = |reason: String| PullError::Unreachable { host: host.clone(), reason };
        let late = || unreachable(format!("no answer within {} s", self.wait.as_secs()));
        let connected = timeout(self.wait, self.connect(url)).await.map_err(|_| late())?;
        let stream = TokioIo::new(connected.map_err(unreachable)?);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        // The connection ends with its request or its body.
        tokio::spawn(connection);
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::get(path).header(HOST, &host).header(USER_AGENT, "periapt");
        for one in accept {
            request = request.header(ACCEPT, *one);
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|error| unreachable(error.to_string()))?;
        let answered = timeout(self.wait, sender.send_request(request)).await.map_err(|_| late())?;
        Ok((answered.map_err(|error| unreachable(error.to_string()))?, host))
    }

    async fn connect(&self, url: &Uri) -> Result<Box<dyn Stream>, String> {
        let is_plain = url.scheme_str() == Some("http");
        let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let network = |error: io::Error| error.to_string();
        let addresses = tokio::net::lookup_host((host.as_str(), port)).await.map_err(network)?;
        // A name may be resolved to anything.
        let addresses: Vec<SocketAddr> =
            addresses.filter(|address| !is_plain || address.ip().is_loopback()).collect();
        if addresses.is_empty() {
            return Err("its name has no address that may be called".into());
        }
        let socket = TcpStream::connect(addresses.as_slice()).await.map_err(network)?;
        socket.set_nodelay(true).map_err(network)?;
        if is_plain {
            return Ok(Box::new(socket));
        }
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let connected = TlsConnector::from(Arc::clone(&self.tls)).connect(name, socket).await;
        Ok(Box::new(connected.map_err(|error| untrusted(&error))?))
    }
}

impl Answer {
    pub(super) fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the next piece of the body.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, PullError> {
        loop {
            let unreachable = |reason: String| PullError::Unreachable { host: self.host.clone(), reason };
            let frame = timeout(self.wait, self.body.frame()).await;
            let frame =
                frame.map_err(|_| unreachable(format!("it sends nothing for {} s", self.wait.as_secs())))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(unreachable(format!("the connection broke: {error}"))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Reads a body of a bounded size.
    pub(super) async fn body(mut self, most: u64) -> Result<Vec<u8>, PullError> {
        let mut content = Vec::new();
        while let Some(piece) = self.piece().await? {
            if (content.len() + piece.len()) as u64 > most {
                let reason = format!("an answer has more than {most} bytes");
                return Err(PullError::Answer { host: self.host, reason });
            }
            content.extend_from_slice(&piece);
        }
        Ok(content)
    }
}

/// Returns true for a host of loopback, with or without a port.
fn is_loopback(host: &str) -> bool {
    let name = host.parse::<hyper::http::uri::Authority>().map(|authority| authority.host().to_owned());
    name.is_ok_and(|name| {
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
        name == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

/// Returns the URL that a redirect names: a whole one, or a path of the same host.
fn joined(from: &Uri, target: &str) -> Option<Uri> {
    let target: Uri = target.parse().ok()?;
    if target.scheme().is_some() && target.authority().is_some() {
        return Some(target);
    }
    let path = target.path_and_query().filter(|path| path.as_str().starts_with('/'))?;
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).ok()
}

/// Returns the reason of a failed handshake.
fn untrusted(error: &io::Error) -> String {
    match HandshakeError::of(error) {
        None => error.to_string(),
        Some(HandshakeError::OtherAuthority) => {
            "its certificate is of an authority that is not trusted".into()
        }
        Some(HandshakeError::NotYetValid(_)) => "its certificate is not valid yet: a clock is wrong".into(),
        Some(HandshakeError::Expired(_)) => "its certificate has expired, or a clock is wrong".into(),
        Some(HandshakeError::OtherName { names, .. }) => format!("its certificate is for {names}"),
        Some(HandshakeError::Refused(reason)) => reason,
        Some(HandshakeError::Protocol(reason)) => format!("it does not speak TLS 1.3 ({reason})"),
    }
}
