//! The routes that controllers of one log use among each other.

use std::sync::Arc;

use axum::{Json, body::Body, extract::State};
use http::HeaderMap;
use periapt_host_api::{
    ErrorCode, Refusal, excerpt,
    member::{MemberAdmission, MemberJoin, MemberKeys},
};

use crate::{
    api::{
        body,
        connection::{ConnectionIdentity, Peer},
        failure::HandlerResult,
        sessions::unproved,
    },
    clock::Clock,
    presence::PresenceReport,
    refusals::Refusals,
    replication::{ForwardedAnswers, ForwardedCommands, Joins, KnownPresence, Members, RoleReceiver},
    state::Submission,
};

/// Carries out commands that another controller passes on, if this controller leads in the term that the other one
/// knows.
pub(crate) async fn commands(
    State(submission): State<Submission>,
    State(role): State<RoleReceiver>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<ForwardedAnswers>> {
    let forwarded: ForwardedCommands = body::value(&submission, &headers, content).await?;
    check_leads(&role, forwarded.term)?;
    let commands = forwarded.commands.into_iter().map(|command| command.into_parts());
    let answers = submission.commands.submit_forwarded(commands).await?;
    Ok(Json(ForwardedAnswers { answers: answers.into_iter().map(Into::into).collect() }))
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
    members.report(report);
    let root = &submission.durable.current().root;
    Ok(Json(KnownPresence::of(root, &members, clock.monotonic_ms())))
}

/// Admits a further controller.
pub(crate) async fn admit(
    State(submission): State<Submission>,
    State(joins): State<Joins>,
    State(clock): State<Arc<dyn Clock>>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<()>> {
    let admission: MemberAdmission = body::value(&submission, &headers, content).await?;
    Ok(Json(joins.admit(admission, clock.monotonic_ms())?))
}

/// Gives the keys to a controller that joins. The attempt is in the audit log, whatever its end.
pub(crate) async fn join(
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
    let joined = joins.join(&join, clock.monotonic_ms()).inspect_err(|refusal| {
        let subject = format!("controller {}", excerpt::shortened(&join.member));
        refusals.note(unproved(&peer, "join-controllers", subject, refusal.code), clock.now());
    })?;
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
