//! Questions of checks, by HTTP and TCP.

use std::{collections::BTreeMap, time::Duration};

use axum::http::{HeaderName, HeaderValue, Request, Uri, header::HOST, header::LOCATION};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use periapt_pebble::Probe;
use tokio::time::timeout;

use crate::{authorities::Authorities, network::Network};

/// The most redirections that are followed.
const MAX_REDIRECTIONS: usize = 10;

/// Asks a workload. The error is in words.
pub(crate) async fn ask(
    question: Probe,
    network: Network,
    authorities: Authorities,
    within: Duration,
) -> Result<(), String> {
    let asked = async {
        match question {
            Probe::Tcp { host, port } => {
                let host = if host.is_empty() { "localhost" } else { host.as_str() };
                network
                    .connect(host, port)
                    .await
                    .map(|_| ())
                    .map_err(|error| format!("{host}:{port}: {error}"))
            }
            Probe::Http { url, headers } => get(&url, &headers, &network, &authorities).await,
        }
    };
    timeout(within, asked).await.unwrap_or_else(|_| Err("timed out".to_owned()))
}

async fn get(
    url: &str,
    headers: &BTreeMap<String, String>,
    network: &Network,
    authorities: &Authorities,
) -> Result<(), String> {
    let mut at: Uri = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
    for _ in 0..=MAX_REDIRECTIONS {
        let (status, location) = get_once(&at, headers, network, authorities)
            .await
            .map_err(|error| format!("Get \"{at}\": {error}"))?;
        match status {
            200..=299 => return Ok(()),
            301 | 302 | 303 | 307 | 308 if location.is_some() => {
                at = followed(&at, &location.unwrap_or_default())?;
            }
            _ => return Err(format!("non-2xx status code {status}")),
        }
    }
    Err(format!("stopped after {MAX_REDIRECTIONS} redirects"))
}

/// Returns the URL that a redirection leads to.
fn followed(from: &Uri, location: &str) -> Result<Uri, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("cannot follow the redirection to {location:?}: {error}");
    if !location.starts_with('/') {
        return location.parse().map_err(|error| wrong(&error));
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(location.parse().map_err(|error| wrong(&error))?);
    Uri::from_parts(parts).map_err(|error| wrong(&error))
}

async fn get_once(
    at: &Uri,
    headers: &BTreeMap<String, String>,
    network: &Network,
    authorities: &Authorities,
) -> Result<(u16, Option<String>), String> {
    let (is_encrypted, usual_port) = match at.scheme_str() {
        Some("http") => (false, 80),
        Some("https") => (true, 443),
        _ => return Err("only http:// and https:// are supported".to_owned()),
    };
    let authority = at.authority().ok_or("it has no host")?;
    let host = authority.host().trim_matches(['[', ']']);
    let stream = network.connect(host, authority.port_u16().unwrap_or(usual_port)).await?;
    let stream = if is_encrypted { authorities.secure(host, stream).await? } else { stream };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let mut request = Request::get(at.path_and_query().map_or("/", |it| it.as_str()))
        .header(HOST, authority.as_str())
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is no header"))?;
        let value: HeaderValue = value.parse().map_err(|_| format!("header {name} has a wrong value"))?;
        request.headers_mut().insert(name, value);
    }
    // It ends with this function.
    let mut connections = tokio::task::JoinSet::new();
    connections.spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok()).map(str::to_owned);
    Ok((response.status().as_u16(), location))
}
