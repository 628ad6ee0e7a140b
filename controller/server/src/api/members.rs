//! The routes that controllers of one log use among each other.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Method, header};
use periapt_host_api::{
    Digest, ErrorCode, Refusal,
    command::Caller,
    excerpt,
    member::{MemberAdmission, MemberJoin, MemberKeys},
};
use periapt_model::{Input, WorkerCommand, check_level};

use crate::{
    api::{
        blob::{self, unavailable, unfinished},
        body::{self, PacedBody},
        connection::{ConnectionIdentity, Peer},
        failure::HandlerResult,
        find::parsed,
        sessions::unproved,
    },
    clock::Clock,
    presence::PresenceReport,
    refusals::Refusals,
    replication::{
        ForwardedAnswers, ForwardedCommand, Joins, KnownPresence, Members, ReceivedCommands, RoleReceiver,
        Snapshots,
    },
    state::{Charms, Contents, Durable, Resources, StoredContent, Submission},
    writer::{QueueKey, QueuedAnswers},
};

/// The longest time to receive a copy of a blob.
const COPIED_WITHIN: Duration = Duration::from_secs(1_800);

/// Carries out commands that another controller passes on, if this controller leads in the term that the other one
/// knows. The response begins once they are queued: from then on, the other one may pass on what comes after them.
pub(crate) async fn commands(
    State(submission): State<Submission>,
    State(role): State<RoleReceiver>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Response> {
    let text = body::json_bytes(&submission, &headers, content).await?;
    let ReceivedCommands { term, commands } = ReceivedCommands::read(&text, body::no_sense)?;
    check_leads(&role, term)?;
    let commands = commands.into_iter().map(|command| command.map(ForwardedCommand::into_parts));
    let queued = submission.commands.queue_forwarded(commands.collect(), text.len());
    // An answer that does not come breaks the response off: nothing is known of the commands then.
    let answers = stream::once(answers(queued));
    let mut response = Response::new(Body::from_stream(answers));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Waits for the answers to commands of another controller, and writes them.
async fn answers(queued: QueuedAnswers) -> Result<Bytes, Refusal> {
    let answers = queued.all().await?.into_iter().map(Into::into).collect();
    let text = serde_json::to_vec(&ForwardedAnswers { answers });
    text.map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "the answers to another controller's commands cannot be written");
        Refusal::new(ErrorCode::Internal, format!("the answers cannot be written: {error}"))
    })
}

/// Takes the report of a following controller, and answers with the connections of all agents.
pub(crate) async fn presence(
    State(submission): State<Submission>,
    State(role): State<RoleReceiver>,
    State(members): State<Members>,
    State(clock): State<Arc<dyn Clock>>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<KnownPresence>> {
    let report: PresenceReport = body::value(&submission, &headers, content).await?;
    check_leads(&role, report.term)?;
    let member = report.member.clone();
    members.report(report)?;
    let root = &submission.durable.current().root;
    Ok(Json(KnownPresence::of(root, &members, &*clock, &member)))
}

/// Answers with a blob that this controller has. Another one that is told that it is here relies on it.
pub(crate) async fn copy(
    State(charms): State<Charms>,
    State(resources): State<Resources>,
    method: Method,
    Path((kind, digest)): Path<(String, String)>,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let (contents, digest): (_, Digest) = (of_kind(charms, resources, &kind)?, parsed(&digest)?);
    let _keeping = contents.collector.lock_for_upload().await;
    contents.collector.note_request(&digest);
    blob::respond_with_own(&contents, &StoredContent::blob(digest), &method, &headers).await
}

/// Keeps a copy of a blob that another controller received.
pub(crate) async fn keep_copy(
    State(charms): State<Charms>,
    State(resources): State<Resources>,
    Path((kind, digest)): Path<(String, String)>,
    content: Body,
) -> HandlerResult<Json<()>> {
    let (contents, digest): (_, Digest) = (of_kind(charms, resources, &kind)?, parsed(&digest)?);
    let _receiving = contents.copies.receiving().await?;
    let limit = usize::try_from(contents.kind.limit()).unwrap_or(usize::MAX);
    let mut body = PacedBody::new(content, limit, COPIED_WITHIN, contents.progress_within);
    let mut incoming = contents.blobs.begin(digest).await.map_err(|error| unavailable(&error))?;
    let received = async {
        while let Some(piece) = body.next().await? {
            incoming.write(piece).await.map_err(|error| unavailable(&error))?;
        }
        Ok::<_, Refusal>(())
    };
    if let Err(refusal) = received.await {
        incoming.discard().await;
        return Err(refusal.into());
    }
    let _keeping = contents.collector.lock_for_upload().await;
    contents.collector.note_request(&digest);
    incoming.finish().await.map_err(|error| unfinished(&error))?;
    Ok(Json(()))
}

fn of_kind(charms: Charms, resources: Resources, kind: &str) -> Result<Contents, Refusal> {
    match kind {
        "charm" => Ok(charms.contents),
        "resource" => Ok(resources.contents),
        _ => Err(Refusal::not_found(format!("blobs of kind {:?} not found", excerpt::shortened(kind)))),
    }
}

/// Answers with the whole state, for another controller.
pub(crate) async fn snapshot(
    State(snapshots): State<Snapshots>,
    State(durable): State<Durable>,
) -> HandlerResult<Response> {
    Ok(Response::new(Body::from_stream(snapshots.begin(durable.records()?).await)))
}

/// Admits a further controller.
pub(crate) async fn admit(
    State(submission): State<Submission>,
    State(joins): State<Joins>,
    State(members): State<Members>,
    State(clock): State<Arc<dyn Clock>>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<()>> {
    let admission: MemberAdmission = body::value(&submission, &headers, content).await?;
    if members.is_running(&admission.member) {
        let text =
            format!("controller {:?} is running: choose another name", excerpt::shortened(&admission.member));
        return Err(Refusal::new(ErrorCode::AlreadyExists, text).into());
    }
    Ok(Json(joins.admit(admission, clock.monotonic_ms())?))
}

/// Gives the keys to a controller that joins. The attempt is in the audit log, whatever its end.
pub(crate) async fn join(
    State(submission): State<Submission>,
    State(joins): State<Joins>,
    State(refusals): State<Refusals>,
    State(clock): State<Arc<dyn Clock>>,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<MemberKeys>> {
    let join: MemberJoin = body::small_value(&headers, content).await?;
    if !matches!(peer.identity, ConnectionIdentity::Tls(_)) {
        return Err(Refusal::new(ErrorCode::NotSupported, "keys are given over TLS alone").into());
    }
    let note = |refusal: &Refusal| {
        let subject = format!("controller {}", excerpt::shortened(&join.member));
        refusals.note(unproved(&peer, "join-controllers", subject, refusal.code), clock.now());
    };
    joins.check(&join, &*clock).inspect_err(note)?;
    // It is listed before it has keys: none runs whose program is not counted.
    let admit = WorkerCommand::AdmitController { name: join.member.clone(), level: join.level };
    let admit = Input::Worker(admit);
    if check_level(&submission.durable.current().root, &admit).is_ok() {
        submission.commands.submit_one(QueueKey::Controller, &Caller::Worker, admit, 0).await?;
    }
    let joined = joins.join(&join, clock.monotonic_ms()).inspect_err(note)?;
    tracing::warn!(member = join.member, %peer, "a controller has joined, and was given all keys");
    Ok(Json(joined))
}

/// Refuses what is meant for the controller that leads in another term.
fn check_leads(role: &RoleReceiver, term: u64) -> Result<(), Refusal> {
    match role.borrow().leads_in() {
        Some(leads) if leads.0 == term => Ok(()),
        _ => {
            let message = format!("this controller does not lead in term {term}");
            Err(Refusal::new(ErrorCode::TryAgain, message))
        }
    }
}
