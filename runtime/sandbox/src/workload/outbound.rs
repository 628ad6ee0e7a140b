//! HTTP requests of a workload to others. Each goes where the caller's policy connects it, and nowhere by default.

use std::{io, sync::Arc, time::Duration};

use http::{Request, Response, Uri, uri::Scheme};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use wasmtime_wasi::runtime::spawn;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks, io::TokioIo};

use crate::services::BoxFuture;

/// The longest time for a connection, and for the head of a response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most bytes of the head of a response, and of what is read ahead.
const MAX_BUFFER: usize = 64 << 10;

/// The server that a workload wants to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboundTarget {
    /// The scheme: HTTP, or HTTPS, for which the connection must be encrypted and the server known.
    pub scheme: Scheme,
    /// The host, a name or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// A connection on which HTTP/1.1 is spoken.
pub trait OutboundConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> OutboundConnection for T {}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum OutboundRefused {
    /// The policy does not grant it.
    #[error("not granted")]
    Denied,
    /// The server cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] io::Error),
}

/// The policy for the HTTP requests of a workload, and the way to those whom it grants.
pub trait Outbound: Send + Sync + 'static {
    /// Connects to a server, or refuses to.
    fn connect(
        &self,
        target: OutboundTarget,
    ) -> BoxFuture<'static, Result<Box<dyn OutboundConnection>, OutboundRefused>>;
}

/// The policy that grants nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOutbound;

impl Outbound for NoOutbound {
    fn connect(
        &self,
        _target: OutboundTarget,
    ) -> BoxFuture<'static, Result<Box<dyn OutboundConnection>, OutboundRefused>> {
        Box::pin(std::future::ready(Err(OutboundRefused::Denied)))
    }
}

/// The hooks of `wasi:http` that lead requests to the policy.
pub(super) struct OutboundHooks(pub(super) Arc<dyn Outbound>);

/// A future without errors of its own, until a connection ends.
type Ending = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// The most bytes of a body that a guest writes at once. Some of such pieces wait for their reader.
const CHUNK: usize = 64 << 10;

impl WasiHttpHooks for OutboundHooks {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _failure: Ending,
    ) -> Box<dyn Future<Output = Result<(Response<WasiBody>, Ending), Error>> + Send> {
        let outbound = Arc::clone(&self.0);
        Box::new(async move { send(&*outbound, request, options.unwrap_or_default()).await })
    }
}

async fn send(
    outbound: &dyn Outbound,
    mut request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(Response<WasiBody>, Ending), Error> {
    let target = target(request.uri()).ok_or(Error::HttpRequestUriInvalid)?;
    let within = |asked: Option<Duration>| asked.map_or(TIMEOUT, |asked| asked.min(TIMEOUT));
    let connected = timeout(within(options.connect_timeout), outbound.connect(target)).await;
    let stream = connected.map_err(|_| Error::ConnectionTimeout)?.map_err(|refused| match refused {
        OutboundRefused::Denied => Error::HttpRequestDenied,
        OutboundRefused::Unreachable(error) => Error::Connect(error),
    })?;
    let (mut sender, connection) =
        http1::Builder::new().max_buf_size(MAX_BUFFER).handshake(TokioIo::new(stream)).await?;
    // It ends with the handle, which the guest's response has.
    let connection = spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    let answered = timeout(within(options.first_byte_timeout), sender.send_request(request)).await;
    let response = answered.map_err(|_| Error::HttpResponseTimeout)??;
    let response = response.map(|body| body.map_err(Error::from).boxed_unsync());
    Ok((response, Box::new(async move { Ok(connection.await?) })))
}

fn target(uri: &Uri) -> Option<OutboundTarget> {
    let authority = uri.authority()?;
    let scheme = uri.scheme()?.clone();
    let default = if scheme == Scheme::HTTPS { 443 } else { 80 };
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    // A user and a password in the address are no part of HTTP.
    let is_plain = !host.is_empty() && !authority.as_str().contains('@');
    is_plain.then(|| OutboundTarget { scheme, host, port: authority.port_u16().unwrap_or(default) })
}

impl std::fmt::Debug for dyn Outbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Outbound(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, host: Option<(&str, u16)>) {
        let found = target(&uri.parse().unwrap());
        assert_eq!(found.as_ref().map(|target| (target.host.as_str(), target.port)), host, "{uri}");
    }

    #[test]
    fn a_target_is_a_host_and_a_port() {
        check("http://db", Some(("db", 80)));
        check("https://db/x", Some(("db", 443)));
        check("http://[::1]:8080/x?y", Some(("::1", 8080)));
        check("http://user@db/", None);
        check("/x", None);
    }
}
