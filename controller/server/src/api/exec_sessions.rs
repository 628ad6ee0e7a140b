//! The routes of dialogues with commands in containers (decision 111).

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{FromRef, Path, State},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use http_body_util::BodyExt as _;
use periapt_host_api::{
    AgentName, Refusal, RequestId, UnitName,
    audit::{AuditOutcome, AuditedRequest},
    command::Caller,
    excerpt,
    exec_session::{ExecSessionInput, ExecSessionOrder, ExecSessionRequest, MAX_BEGIN_LINE_BYTES},
};
use periapt_model::{Input, Right, Subject, session_subject};

use crate::{
    api::{
        body, caller::RequestCaller, failure::HandlerResult, find::parsed, models::readable, streams,
        workload_logs,
    },
    bounds::StreamOf,
    clock::Clock,
    exec_sessions::{ExecSession, SessionParts},
    replication::Freshness,
    state::{ControllerState, Durable, Streams},
    workload_orders::WorkloadOrders,
    writer::{Commands, QueueKey},
};

/// The time for the first line of a session to arrive.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// Reads the first line of a session's content. Returns the bytes that have come after it, too.
async fn begin_line(content: &mut Body) -> Result<(ExecSessionRequest, Bytes), Refusal> {
    let mut bytes = BytesMut::new();
    let end = loop {
        let searched = bytes.len();
        match content.frame().await {
            // Trailers are ignored.
            Some(Ok(frame)) => bytes.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Some(Err(_)) | None => {
                return Err(Refusal::bad_request("the content ends within its first line"));
            }
        }
        let unseen = bytes.get(searched..).unwrap_or_default();
        if let Some(at) = unseen.iter().position(|byte| *byte == b'\n') {
            break searched + at;
        }
        if bytes.len() > MAX_BEGIN_LINE_BYTES {
            let text = format!("the first line is longer than {MAX_BEGIN_LINE_BYTES} bytes");
            return Err(Refusal::bad_request(text));
        }
    };
    let line = bytes.split_to(end + 1);
    let input: ExecSessionInput = serde_json::from_slice(&line).map_err(|error| {
        Refusal::bad_request(format!("invalid first line: {}", excerpt::of_message(&error.to_string())))
    })?;
    match input {
        ExecSessionInput::Begin(request) => {
            request.check()?;
            Ok((*request, bytes.freeze()))
        }
        ExecSessionInput::Stdin(_) | ExecSessionInput::End | ExecSessionInput::Resize(_) => {
            Err(Refusal::bad_request("the first line begins a command"))
        }
    }
}

/// The writer of a session's entries in the audit log.
struct SessionAudit {
    commands: Commands,
    clock: Arc<dyn Clock>,
    /// The entry of the beginning.
    begin: AuditedRequest,
}

impl SessionAudit {
    async fn write(&self, request: AuditedRequest) -> Result<(), Refusal> {
        let input = Input::Audit(request);
        self.commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await.map(drop)
    }

    /// Writes the entry of the beginning: a command that runs is in the log.
    async fn begun(&self) -> Result<(), Refusal> {
        self.write(self.begin.clone()).await
    }

    /// Writes the entry of the end.
    async fn ended(self, end: &str) {
        let subject = format!("{}, {end}", self.begin.subject);
        let (act, at) = ("end-exec-session".to_owned(), self.clock.now());
        let request = AuditedRequest { at, act, subject, ..self.begin.clone() };
        if let Err(refusal) = self.write(request).await {
            tracing::warn!(%refusal, "the end of a session is missing in the audit log");
        }
    }
}

/// The parts of the state that sessions need.
pub(crate) struct SessionServices {
    streams: Streams,
    orders: WorkloadOrders,
    commands: Commands,
    freshness: Freshness,
    clock: Arc<dyn Clock>,
}

impl FromRef<ControllerState> for SessionServices {
    fn from_ref(state: &ControllerState) -> Self {
        Self {
            streams: state.streams.clone(),
            orders: state.workload_orders.clone(),
            commands: state.submission.commands.clone(),
            freshness: state.freshness.clone(),
            clock: Arc::clone(&state.clock),
        }
    }
}

/// Begins a dialogue with a command in a container, and answers with its output.
pub(crate) async fn begin(
    State(durable): State<Durable>,
    State(SessionServices { streams, orders, commands, freshness, clock }): State<SessionServices>,
    who: RequestCaller,
    Path((model, application, number)): Path<(String, String, String)>,
    version: Version,
    headers: HeaderMap,
    mut content: Body,
) -> HandlerResult<Response> {
    let unit: UnitName = parsed(&format!("{application}/{number}"))?;
    let (published, state) = readable(&durable, &who, &model)?;
    who.require(&published.root, Right::WriteModel, Subject::Model(&state))?;
    if version < Version::HTTP_2 {
        return Err(Refusal::bad_request("a session goes both ways at once, which needs HTTP/2").into());
    }
    body::check_type(&headers, streams::NDJSON)?;
    let begin = tokio::time::timeout(BEGINS_WITHIN, begin_line(&mut content)).await;
    let (request, first) =
        begin.map_err(|_| Refusal::bad_request("the first line did not arrive in 30 s"))??;
    let about = |refusal: Refusal| refusal.about(format!("unit {unit}"));
    let container = (&unit, &request.container);
    let agent = workload_logs::agent_of(&published.root, &state, &streams, container).map_err(about)?;
    let (uuid, user) = (state.model().uuid, who.user()?.clone());
    let permit = streams.limits.admit(StreamOf::Model(uuid), version)?;
    let origin = who.sender().origin;
    let audit = SessionAudit {
        begin: AuditedRequest {
            at: clock.now(),
            user: Some(user.clone()),
            session: origin.as_ref().and_then(|origin| origin.session.clone()),
            address: origin.map_or_else(|| "local".to_owned(), |origin| origin.address),
            act: "begin-exec-session".to_owned(),
            subject: session_subject(&uuid, &unit, &request),
            outcome: AuditOutcome::Done,
        },
        commands,
        clock,
    };
    audit.begun().await?;
    let order = ExecSessionOrder { model: uuid, unit: unit.clone(), request };
    let (presence, stop) = (streams.presence.clone(), streams.stop.clone());
    let parts = SessionParts { orders: &orders, presence, stop, lost: freshness.lost().boxed() };
    let opened = ExecSession::open(parts, (agent, user), order, (first, content));
    let (session, ended) = match opened {
        Ok(opened) => opened,
        Err(refusal) => {
            audit.ended(&refusal.message).await;
            return Err(about(refusal).into());
        }
    };
    tokio::spawn(async move {
        let end = ended.await;
        // The stream is dropped without a reason in each of these cases.
        let dropped = "the client has left or lost its access, or the controller fell behind its log";
        audit.ended(end.as_deref().unwrap_or(dropped)).await;
    });
    let (first, session) = session.begun().await.map_err(about)?;
    let patient = session.stream();
    let rest =
        stream::unfold(
            session,
            |mut session| async move { session.next().await.map(|lines| (lines, session)) },
        );
    let mut response = streams::encoded(permit, stream::iter([first]).chain(rest));
    response.extensions_mut().insert(patient);
    Ok(response)
}

/// Answers an agent with the next bytes of a session's input, as soon as there are some.
pub(crate) async fn input(
    State(orders): State<WorkloadOrders>,
    who: RequestCaller,
    Path((agent, id)): Path<(String, String)>,
) -> HandlerResult<Response> {
    let (agent, id): (AgentName, RequestId) = (parsed(&agent)?, parsed(&id)?);
    who.agent(&agent)?;
    let mut response = Response::new(Body::from(orders.input(&agent, id).await?));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn content(pieces: &[&'static str]) -> Body {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn the_first_line_begins_a_command_however_it_arrives() {
        let line = "{\"begin\":{\"container\":\"web\",\"command\":[\"sh\"]}}\n";
        let (one, two) = line.split_at(9);
        for (pieces, rest) in [(vec![line, "x"], ""), (vec![one, two], "")] {
            let (request, came) = begin_line(&mut content(&pieces)).await.unwrap();
            assert_eq!((request.command, &came[..]), (vec!["sh".to_owned()], rest.as_bytes()));
        }
        let both = format!("{line}\"end\"\n");
        let (_, came) = begin_line(&mut Body::from(both)).await.unwrap();
        assert_eq!(came, "\"end\"\n");
    }

    #[tokio::test]
    async fn another_first_line_is_one_error() {
        for (pieces, error) in [
            (vec!["\"end\"\n"], "begins a command"),
            (vec!["nonsense\n"], "invalid first line"),
            (vec!["{\"begin\":{\"container\":\"web\",\"command\":[]}}\n"], "no command specified"),
            (vec!["{\"begin\""], "ends within its first line"),
        ] {
            let refused = begin_line(&mut content(&pieces)).await.unwrap_err();
            assert!(refused.message.contains(error), "{refused}");
        }
        let mut endless = Body::from(vec![b'x'; MAX_BEGIN_LINE_BYTES + 1]);
        let refused = begin_line(&mut endless).await.unwrap_err();
        assert!(refused.message.contains("longer than"), "{refused}");
    }
}
