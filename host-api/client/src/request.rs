//! A request and its response.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use periapt_host_api::{
    ErrorCode, Refusal, RequestId, agent, api::MAX_LINE_BYTES, command::CommandResults, problem::Problem,
    trace::TRACEPARENT,
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Client, ClientError, Identity, RequestOutcome, Result,
    attempts::{Attempts, Repeat, settled, unknown_result},
    connect::Body,
    connection::RequestSender,
    error::chain,
    ndjson::{self, NdJson},
    peer::Peer,
    retry,
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
    repeat: Repeat,
}

/// A response, and the controller that it came from.
pub(crate) struct Received {
    pub(crate) peer: Peer,
    /// The generation of the connection.
    pub(crate) generation: u64,
    /// The number of other addresses that the client knows.
    alternatives: usize,
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
            repeat: Repeat::Never,
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

    /// Gives the request an id, by which the controller carries it out once however often it is sent. The same id goes with
    /// all attempts. Only for routes that keep answers.
    pub(crate) fn once(mut self) -> Self {
        let mut bytes = [0; 16];
        // Without randomness the request has no id, and is sent once.
        if getrandom::fill(&mut bytes).is_ok() {
            let id = RequestId::from_random_bytes(bytes).to_string();
            if let Ok(id) = header::HeaderValue::try_from(id) {
                self.headers.insert(agent::header::REQUEST_ID, id);
                self.repeat = Repeat::ById;
            }
        }
        self
    }

    /// Has the call end at once if the controller has too many streams of this kind.
    pub(crate) fn beside_others(mut self) -> Self {
        self.repeat = Repeat::BesideOthers;
        self
    }

    /// Sends the request and reads the response as one value.
    pub(crate) async fn value<T: DeserializeOwned>(self) -> Result<T> {
        self.settle(&mut self.attempts()).await
    }

    /// Sends commands and reads their results. They are sent again while the outcome of one of them is not known.
    pub(crate) async fn results<T: DeserializeOwned>(self) -> Result<CommandResults<T>> {
        let (mut attempts, mut known) = (self.attempts(), None);
        loop {
            let results = self.settle(&mut attempts).await?;
            let unknown = unknown_result(&results, &attempts);
            let results = settled(known, results);
            let Some(unknown) = unknown else { return Ok(results) };
            if attempts.again(unknown, None).await.is_err() {
                return Ok(attempts.told(results));
            }
            known = Some(results);
        }
    }

    fn attempts(&self) -> Attempts {
        Attempts::new(self.client.options(), self.repeat)
    }

    async fn settle<T: DeserializeOwned>(&self, attempts: &mut Attempts) -> Result<T> {
        let outcome = RequestOutcome::of(&self.method);
        let within = self.client.options().answer_within;
        loop {
            let Received { peer, generation, response, .. } = self.exchange(within, attempts).await?;
            match whole(&peer, response.into_body(), within, outcome).await {
                Ok(bytes) => {
                    return serde_json::from_slice(&bytes).map_err(|error| peer.protocol(error.to_string()));
                }
                Err(error) => {
                    attempts.broken = Some(generation);
                    attempts.again(error, None).await?;
                }
            }
        }
    }

    /// Sends the request and reads the response as a stream of lines.
    pub(crate) async fn lines<T: DeserializeOwned + Send + 'static>(self) -> Result<NdJson<T>> {
        let Received { peer, response, .. } = self.response().await?;
        Ok(ndjson::decode(response.into_body(), peer))
    }

    /// Sends the request and waits for the head of a successful response, within the time for an answer.
    pub(crate) async fn response(self) -> Result<Received> {
        self.exchange(self.client.options().answer_within, &mut self.attempts()).await
    }

    /// Sends the request with a slow body, and waits up to `within` for the head of a successful response.
    pub(crate) async fn upload(self, within: Duration) -> Result<Received> {
        self.exchange(within, &mut self.attempts()).await
    }

    /// Sends the request until a controller takes it, for as long as the options allow. `within` limits each attempt.
    async fn exchange(&self, within: Duration, attempts: &mut Attempts) -> Result<Received> {
        loop {
            let (error, asked) = match self.attempt(within, &mut attempts.broken).await {
                Ok(received) if received.response.status().is_success() => return Ok(received),
                Ok(received) => {
                    let asked = retry::asked_for(received.response.headers());
                    let (generation, alternatives) = (received.generation, received.alternatives);
                    let error = refused(received, &self.method).await;
                    // Another controller may be better off: this one may be cut off from the log, or end. Callers that make
                    // no attempts of their own go there next.
                    if alternatives > 0 && is_for_later(&error) {
                        self.client.leave(generation);
                    }
                    (error, asked)
                }
                Err(error) => (error, None),
            };
            attempts.again(error, asked).await?;
        }
    }

    /// Connects for as long as the options allow, then sends the request within `within`. Over a connection that
    /// breaks, the request is sent again if it was not sent or only reads: there may be another controller that answers.
    /// A connection that is `broken` is not used, and its address is tried last.
    async fn attempt(&self, within: Duration, broken: &mut Option<u64>) -> Result<Received> {
        let outcome = RequestOutcome::of(&self.method);
        let mut failed = None;
        for _ in 0..=MAX_RECONNECTS {
            let RequestSender { mut sender, generation, peer, alternatives } =
                self.client.request_sender(*broken).await?;
            let sent = tokio::time::timeout(within, sender.try_send_request(self.request(&peer)?)).await;
            let error = match sent {
                Ok(Ok(response)) => {
                    self.client.options().seen.note(response.headers());
                    return Ok(Received { peer, generation, alternatives, response });
                }
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            *broken = Some(generation);
            let Some(mut error) = error else { return Err(too_late(&peer, outcome)) };
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
        self.client.options().seen.tell(request.headers_mut());
        Ok(request)
    }
}

impl Received {
    /// Reads the rest of the response to a request that may have changed something, as one value.
    pub(crate) async fn value<T: DeserializeOwned>(self, within: Duration) -> Result<T> {
        let Self { peer, response, .. } = self;
        let bytes = whole(&peer, response.into_body(), within, RequestOutcome::Unknown).await?;
        serde_json::from_slice(&bytes).map_err(|error| peer.protocol(error.to_string()))
    }
}

/// Returns true if a controller refuses a whole request for now.
fn is_for_later(error: &ClientError) -> bool {
    error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::TryAgain)
}

fn too_late(peer: &Peer, outcome: RequestOutcome) -> ClientError {
    peer.unreachable("no answer in time", outcome)
}

/// Reads a whole response within a time.
async fn whole(peer: &Peer, body: Incoming, within: Duration, outcome: RequestOutcome) -> Result<Bytes> {
    let collected = collect(peer, body, MAX_ANSWER_BYTES, outcome);
    tokio::time::timeout(within, collected).await.unwrap_or_else(|_| Err(too_late(peer, outcome)))
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
    let Received { peer, response, .. } = received;
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
