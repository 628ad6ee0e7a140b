//! OTLP over HTTP with protobuf. The library's exporter encodes; the one request at a time is sent from its own thread.

use std::{future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};

/// The timeout of a collector's answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// The most bytes of an answer: it says how many spans were refused, and why.
const MAX_ANSWER: usize = 64 << 10;

/// The error for an endpoint that no span can be sent to.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The text is no URL of a collector.
    #[error(
        "OTEL_EXPORTER_OTLP_ENDPOINT is {endpoint:?}, which must be http://HOST:PORT of a collector on this machine or near it"
    )]
    Endpoint {
        /// The text.
        endpoint: String,
    },
    /// The library refuses the endpoint.
    #[error("spans cannot be exported")]
    Exporter(#[source] opentelemetry_otlp::ExporterBuildError),
}

/// Returns the exporter to an endpoint.
pub(crate) fn exporter(endpoint: &str) -> Result<SpanExporter, EndpointError> {
    let wrong = || EndpointError::Endpoint { endpoint: endpoint.to_owned() };
    let base = endpoint.trim_end_matches('/');
    let uri: Uri = format!("{base}/v1/traces").parse().map_err(|_| wrong())?;
    if uri.scheme_str() != Some("http") || uri.port().is_none() {
        return Err(wrong());
    }
    SpanExporter::builder()
        .with_http()
        .with_http_client(Client)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(uri.to_string())
        .with_timeout(ANSWERS_WITHIN)
        .build()
        .map_err(EndpointError::Exporter)
}

/// Sends a request over a connection of its own. Spans go out a few times in a minute.
#[derive(Debug)]
struct Client;

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        // The exporter's thread belongs to no runtime.
        Box::pin(async move {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move { tokio::time::timeout(ANSWERS_WITHIN, send(request)).await? })
        })
    }
}

async fn send(mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let authority = request.uri().authority().ok_or("an endpoint without a host")?.clone();
    let stream = tokio::net::TcpStream::connect(authority.as_str()).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse()?;
    *request.uri_mut() = path;
    request.headers_mut().insert(header::HOST, HeaderValue::try_from(authority.as_str())?);
    let response = sender.send_request(request.map(Full::new)).await?;
    let (head, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
    connection.abort();
    Ok(Response::from_parts(head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_nothing_can_be_sent_to_is_refused() {
        for wrong in
            ["", "127.0.0.1:4318", "https://collector.example:4318", "http://collector", "http://a b:1"]
        {
            let error = exporter(wrong).unwrap_err().to_string();
            assert!(error.contains("http://HOST:PORT"), "{wrong}: {error}");
        }
        for right in ["http://127.0.0.1:4318", "http://[::1]:4318/"] {
            assert!(exporter(right).is_ok(), "{right}");
        }
    }
}
