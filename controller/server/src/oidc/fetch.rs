//! Requests to an issuer: each over a TLS connection of its own, bounded in time and size, without redirects.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper_util::rt::TokioIo;
use periapt_transport::HandshakeError;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, task::JoinSet};
use tokio_rustls::TlsConnector;

/// The timeout of a request, with its connection. A person waits for it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The most bytes of an answer. The keys of large issuers have some 30 KiB, with their certificates.
const MAX_ANSWER: usize = 256 << 10;

/// The port of a URL that names none.
const HTTPS_PORT: u16 = 443;

/// The URL of a resource with TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpsUrl(Uri);

impl HttpsUrl {
    /// Parses a URL; none if it has another scheme or no host.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        (uri.scheme_str() == Some("https") && has_host).then_some(Self(uri))
    }

    fn host(&self) -> &str {
        let host = self.0.host().unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }
}

/// An answer of any status but a redirect.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// The reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("it does not answer: {0}")]
    Connect(io::Error),
    #[error("{0}")]
    Certificate(String),
    #[error("it has not answered within {} s", ANSWERS_WITHIN.as_secs())]
    Late,
    #[error("its answer has more than {} KiB", MAX_ANSWER >> 10)]
    TooLarge,
    #[error("it redirects to another address, and the controller follows no redirects")]
    Redirected,
    #[error("it does not speak HTTP: {0}")]
    Protocol(String),
}

/// A client for requests to an issuer.
#[derive(Debug, Clone)]
pub(super) struct HttpsClient(pub(super) Arc<ClientConfig>);

impl HttpsClient {
    /// Reads a resource.
    pub(super) async fn get(&self, url: &HttpsUrl) -> Result<Fetched, FetchError> {
        self.send(url, Request::new(Full::default())).await
    }

    /// Sends a form, with more headers.
    pub(super) async fn post(
        &self,
        url: &HttpsUrl,
        form: String,
        headers: HeaderMap,
    ) -> Result<Fetched, FetchError> {
        let mut request = Request::new(Full::from(form));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, kind);
        self.send(url, request).await
    }

    async fn send(&self, url: &HttpsUrl, request: Request<Full<Bytes>>) -> Result<Fetched, FetchError> {
        let exchange = self.exchange(url, request);
        tokio::time::timeout(ANSWERS_WITHIN, exchange).await.map_err(|_| FetchError::Late)?
    }

    /// Sends a request over a connection of its own, and reads the answer.
    async fn exchange(
        &self,
        url: &HttpsUrl,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Fetched, FetchError> {
        let protocol = |error: &dyn std::fmt::Display| FetchError::Protocol(error.to_string());
        let port = url.0.port_u16().unwrap_or(HTTPS_PORT);
        let stream = TcpStream::connect((url.host(), port)).await.map_err(FetchError::Connect)?;
        let name = ServerName::try_from(url.host().to_owned()).map_err(|error| protocol(&error))?;
        let connector = TlsConnector::from(Arc::clone(&self.0));
        let stream = connector.connect(name, stream).await.map_err(untrusted)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| protocol(&error))?;
        // The connection ends with this request.
        let mut connections = JoinSet::new();
        connections.spawn(connection);

        let path = url.0.path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let authority = url.0.authority().map_or("", |authority| authority.as_str());
        let host = HeaderValue::try_from(authority).map_err(|error| protocol(&error))?;
        request.headers_mut().insert(header::HOST, host);
        let answer = sender.send_request(request).await.map_err(|error| protocol(&error))?;
        let status = answer.status();
        if status.is_redirection() {
            return Err(FetchError::Redirected);
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await.map_err(|error| {
            match error.is::<LengthLimitError>() {
                true => FetchError::TooLarge,
                false => protocol(&error),
            }
        })?;
        Ok(Fetched { status, body: body.to_bytes() })
    }
}

/// Returns the error of a failed handshake.
fn untrusted(error: io::Error) -> FetchError {
    let clock = |what: &str, by: Duration| {
        format!("its certificate {what} by {} s: this host's clock or the issuer's is wrong", by.as_secs())
    };
    FetchError::Certificate(match HandshakeError::of(&error) {
        None => return FetchError::Connect(error),
        Some(HandshakeError::OtherAuthority) => {
            "its certificate is of an authority that the controller does not trust: --oidc-ca-cert names one"
                .into()
        }
        Some(HandshakeError::NotYetValid(by)) => clock("is not valid yet", by),
        Some(HandshakeError::Expired(by)) => clock("has expired", by),
        Some(HandshakeError::OtherName { names, .. }) => format!("its certificate is for {names}"),
        Some(HandshakeError::Refused(reason) | HandshakeError::Protocol(reason)) => reason,
    })
}

#[cfg(test)]
mod tests {
    use periapt_transport::{Authority, web_client_config};
    use tokio::net::TcpListener;

    use super::*;

    fn client() -> HttpsClient {
        let authority = Authority::generate().unwrap();
        HttpsClient(web_client_config(Some(authority.certificate())).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn an_issuer_that_never_answers_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = HttpsUrl::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        let error = client().get(&url).await.unwrap_err().to_string();
        assert_eq!(error, "it has not answered within 10 s");
    }

    #[tokio::test]
    async fn an_issuer_that_does_not_listen_or_speaks_no_tls_is_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = HttpsUrl::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        let plain = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            stream
        });
        let error = client().get(&url).await.unwrap_err();
        assert!(matches!(error, FetchError::Certificate(_)), "{error:?}");
        drop(plain.await.unwrap());
        let error = client().get(&url).await.unwrap_err();
        assert!(matches!(error, FetchError::Connect(_)), "{error:?}");
    }

    #[test]
    fn only_urls_with_tls_and_a_host_are_fetched() {
        for bad in ["http://id.example", "ftp://id.example", "id.example", "/path", "https://"] {
            assert_eq!(HttpsUrl::parse(bad), None, "{bad}");
        }
        assert_eq!(HttpsUrl::parse("https://[::1]:8443/a?b").unwrap().host(), "::1");
    }
}
