//! A request and its response.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use periapt_host_api::{Refusal, agent, api::MAX_LINE_BYTES, problem::Problem, trace::TRACEPARENT};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Client, ClientError, Identity, RequestOutcome, Result,
    connect::Body,
    connection::RequestSender,
    error::chain,
    ndjson::{self, NdJson},
    peer::Peer,
    retry::{self, Retry, is_busy},
};

/// The largest response that is read as one value, in bytes.
const MAX_ANSWER_BYTES: usize = MAX_LINE_BYTES;
/// The largest refusal that is read, in bytes.
const MAX_PROBLEM_BYTES: usize = 64 * 1024;
/// The number of times that a connection which breaks before the request is sent is replaced.
const MAX_RECONNECTS: u32 = 3;

/// A request under construction.
pub(crate) struct Call<'a> {
    client: &'a Client,
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    headers: HeaderMap,
    content: Content<'a>,
}

/// A response, and the controller that it came from.
pub(crate) struct Received {
    pub(crate) peer: Peer,
    pub(crate) response: Response<Incoming>,
}

/// The content of a request, which may be sent more than once.
pub(crate) enum Content<'a> {
    /// Bytes in memory.
    Whole(Bytes),
    /// A body that is made for each attempt.
    Made(Box<dyn Fn() -> Body + Send + Sync + 'a>),
}

impl Content<'_> {
    fn body(&self) -> Body {
        match self {
            Self::Whole(bytes) => Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync(),
            Self::Made(make) => make(),
        }
    }
}

impl Client {
    /// Starts a request. `path` starts with a slash and needs no escaping.
    pub(crate) fn call(&self, method: Method, path: impl Into<String>) -> Call<'_> {
        Call {
            client: self,
            method,
            path: path.into(),
            query: Vec::new(),
            headers: HeaderMap::new(),
            content: Content::Whole(Bytes::new()),
        }
    }

    pub(crate) fn get(&self, path: impl Into<String>) -> Call<'_> {
        self.call(Method::GET, path)
    }
}

impl<'a> Call<'a> {
    /// Adds a query parameter and escapes its value.
    pub(crate) fn query(mut self, key: &'static str, value: impl ToString) -> Self {
        self.query.push((key, value.to_string()));
        self
    }

    pub(crate) fn header(mut self, name: header::HeaderName, value: header::HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn json(mut self, value: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(value)
            .map_err(|error| self.client.protocol(format!("the request cannot be written: {error}")))?;
        self.content = Content::Whole(text.into());
        Ok(self.header(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json")))
    }

    pub(crate) fn content(mut self, content: Content<'a>) -> Self {
        self.content = content;
        self
    }

    /// Sends the request and reads the response as one value.
    pub(crate) async fn value<T: DeserializeOwned>(self) -> Result<T> {
        let outcome = RequestOutcome::of(&self.method);
        let within = self.client.options().answer_within;
        let Received { peer, response } = self.response().await?;
        let collected = collect(&peer, response.into_body(), MAX_ANSWER_BYTES, outcome);
        let bytes = tokio::time::timeout(within, collected)
            .await
            .unwrap_or_else(|_| Err(too_late(&peer, outcome)))?;
        serde_json::from_slice(&bytes).map_err(|error| peer.protocol(error.to_string()))
    }

    /// Sends the request and reads the response as a stream of lines.
    pub(crate) async fn lines<T: DeserializeOwned + Send + 'static>(self) -> Result<NdJson<T>> {
        let Received { peer, response } = self.response().await?;
        Ok(ndjson::decode(response.into_body(), peer))
    }

    /// Sends the request and waits for the head of a successful response, within the time for an answer.
    pub(crate) async fn response(self) -> Result<Received> {
        let within = self.client.options().answer_within;
        self.exchange(within).await
    }

    /// Sends the request with a slow body, and waits up to `within` for the head of a successful response.
    pub(crate) async fn upload(self, within: Duration) -> Result<Received> {
        self.exchange(within).await
    }

    /// Sends the request until the controller is not too busy, for as long as the options allow. `within` limits each
    /// attempt.
    async fn exchange(self, within: Duration) -> Result<Received> {
        let mut retry = Retry::new(self.client.options().busy_retry_timeout);
        let mut told = false;
        loop {
            let received = self.attempt(within).await?;
            if received.response.status().is_success() {
                return Ok(received);
            }
            let asked = retry::asked_for(received.response.headers());
            let error = refused(received, &self.method).await;
            if !is_busy(&error) || !retry.next(asked).await {
                return Err(error);
            }
            // The first refusal is a warning that tells the caller why it waits.
            match std::mem::replace(&mut told, true) {
                false => {
                    tracing::warn!("the controller did not take the request, which is sent again: {error}")
                }
                true => tracing::info!(%error, "the controller is busy; sending it again"),
            }
        }
    }

    /// Connects for as long as the options allow, then sends the request within `within`. Over a connection that
    /// breaks, the request is sent again if it was not sent or only reads: there may be another controller that answers.
    async fn attempt(&self, within: Duration) -> Result<Received> {
        let outcome = RequestOutcome::of(&self.method);
        let mut broken = None;
        let mut failed = None;
        for _ in 0..=MAX_RECONNECTS {
            let RequestSender { mut sender, generation, peer, alternatives } =
                self.client.request_sender(broken).await?;
            let sent = tokio::time::timeout(within, sender.try_send_request(self.request(&peer)?)).await;
            let mut error = match sent.map_err(|_| too_late(&peer, outcome))? {
                Ok(response) => return Ok(Received { peer, response }),
                Err(error) => error,
            };
            broken = Some(generation);
            failed = match error.take_message() {
                // The connection was dead before the request was sent.
                Some(_) => Some(peer.unreachable(
                    "its connections break as soon as they are made",
                    RequestOutcome::NothingHappened,
                )),
                None => {
                    let error = peer.unreachable(chain(error.error()), outcome);
                    if outcome == RequestOutcome::Unknown || alternatives == 0 {
                        return Err(error);
                    }
                    tracing::debug!(%error, "asking another controller");
                    Some(error)
                }
            };
        }
        Err(failed.unwrap_or_else(|| self.client.protocol("no attempt was made")))
    }

    /// Returns the request to a controller.
    fn request(&self, peer: &Peer) -> Result<Request<Body>> {
        let mut target = self.path.clone();
        for (index, (key, value)) in self.query.iter().enumerate() {
            target.push(if index == 0 { '?' } else { '&' });
            target.push_str(key);
            target.push('=');
            escape_into(value, &mut target);
        }
        let cannot = |error: http::Error| peer.protocol(format!("the request cannot be made: {error}"));
        let uri = Uri::builder()
            .scheme(peer.address().scheme())
            .authority(peer.address().authority())
            .path_and_query(target)
            .build()
            .map_err(cannot)?;
        let mut builder = Request::builder().method(self.method.clone()).uri(uri);
        builder = match &self.client.options().identity {
            Identity::Local => builder,
            Identity::User(name) => builder.header(agent::header::USER, name.as_str()),
            Identity::Token(token) => {
                builder.header(header::AUTHORIZATION, format!("Bearer {}", token.reveal()))
            }
            Identity::Agent(name) => builder.header(agent::header::AGENT, name.as_str()),
            Identity::Controller => builder.header(agent::header::CONTROLLER, "1"),
        };
        if let Some(trace) = &self.client.options().trace {
            builder = builder.header(TRACEPARENT, trace.to_string());
        }
        let mut request = builder.body(self.content.body()).map_err(cannot)?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }
}

fn too_late(peer: &Peer, outcome: RequestOutcome) -> ClientError {
    peer.unreachable("no answer in time", outcome)
}

async fn collect(peer: &Peer, body: Incoming, limit: usize, outcome: RequestOutcome) -> Result<Bytes> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(peer.protocol(format!("the answer is larger than {limit} bytes")))
        }
        Err(error) => Err(peer.unreachable(chain(error.as_ref()), outcome)),
    }
}

/// Reads the refusal of a response.
///
/// The body is small and on its way; the connection's keep-alive notices a controller that stalls.
async fn refused(received: Received, method: &Method) -> ClientError {
    let Received { peer, response } = received;
    let status = response.status();
    if *method == Method::HEAD && status == StatusCode::NOT_FOUND {
        return Refusal::not_found("no such thing").into();
    }
    let bytes = match collect(&peer, response.into_body(), MAX_PROBLEM_BYTES, RequestOutcome::NothingHappened)
        .await
    {
        Ok(bytes) => bytes,
        Err(error) => return error,
    };
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => ClientError::Refused(problem.into()),
        Err(_) => peer.protocol(format!("HTTP status {status} without a reason that can be read")),
    }
}

/// Appends a text to a query and escapes all but unreserved characters.
fn escape_into(text: &str, target: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            target.push(byte.into());
        } else {
            target.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_keeps_no_character_that_means_something() {
        let mut text = String::new();
        escape_into("mysql/0 & ä=*", &mut text);
        assert_eq!(text, "mysql%2F0%20%26%20%C3%A4%3D%2A");
    }
}
