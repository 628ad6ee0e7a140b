//! `POST /v1/agents/AGENT/certificate`: agents join, and renew their certificates. The caller needs no identity: the
//! agent's key signs the request, which holds a join token until the controller knows the key.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{FromRef, Path, State},
};
use http::HeaderMap;
use periapt_host_api::{
    AgentName, ErrorCode, Refusal,
    agent::{CertificateRequest, IssuedCertificate},
    command::Caller,
};
use periapt_model::{Input, Origin, check_join};
use periapt_transport::{CertificateError, requested_key};

use crate::{
    api::{
        body, caller::not_logged_in, connection::Peer, failure::HandlerResult, find::parsed,
        sessions::unproved,
    },
    clock::Clock,
    listen::Issuer,
    login::{Attempt, Throttle},
    network::Network,
    refusals::Refusals,
    state::{ControllerState, Submission},
    writer::{QueueKey, Sender},
};

/// The validity of an agent's certificate. The agent renews it after half of this time. A stolen certificate without its
/// key is of no use, and one with its key ends with this time.
const VALIDITY: Duration = Duration::from_secs(24 * 60 * 60);

/// The parts of the controller that let agents in.
#[derive(Clone)]
pub(crate) struct Gate {
    issuer: Issuer,
    /// The bounds on failed joins.
    joins: Throttle<AgentName>,
    refusals: Refusals,
    clock: Arc<dyn Clock>,
}

impl FromRef<ControllerState> for Gate {
    fn from_ref(state: &ControllerState) -> Self {
        Self {
            issuer: state.issuer.clone(),
            joins: state.logins.joins.clone(),
            refusals: state.refusals.clone(),
            clock: Arc::clone(&state.clock),
        }
    }
}

pub(crate) async fn certificate(
    State(submission): State<Submission>,
    State(Gate { issuer, joins, refusals, clock }): State<Gate>,
    peer: Peer,
    Path(agent): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<IssuedCertificate>> {
    let agent: AgentName = parsed(&agent)?;
    let asked: CertificateRequest = body::small_value(&headers, content).await?;
    let no_tls = || Refusal::new(ErrorCode::NotSupported, "this controller issues no certificates");
    let issuing = issuer.0.ok_or_else(no_tls)?;
    // A caller that is not let in costs the controller no signature to check, and no write.
    let failed = |refusal: Refusal| {
        refusals.note(unproved(&peer, "join-agent", format!("agent {agent}"), refusal.code), clock.now());
        refusal
    };
    let attempt = Attempt { name: agent.clone(), network: Network::of(peer.ip()) };
    if asked.token.is_some() {
        joins.begin(&attempt, clock.monotonic_ms()).map_err(failed)?;
    }
    let refused = |error: CertificateError| Refusal::bad_request(error.to_string());
    let key = requested_key(&asked.request).map_err(refused)?;
    match asked.token {
        Some(token) => {
            let token = token.digest();
            check_join(&submission.durable.current().root, &agent, key, token, clock.now())
                .map_err(failed)?;
            let origin = Some(Origin { session: None, address: peer.ip().to_string() });
            let sender = Sender { caller: Caller::Agent(agent.clone()), origin, scope: None };
            let input = Input::Join { agent: agent.clone(), key, token };
            submission.commands.submit_one(QueueKey::Controller, sender, input, 0).await?;
            joins.succeeded(&attempt);
        }
        None if submission.durable.current().root.enrolments().key_of(&agent) == Some(key) => {}
        None => return Err(not_logged_in().into()),
    }
    let now = clock.now();
    let certificate =
        issuing.authority.issue_agent(&asked.request, &agent, now, VALIDITY).map_err(refused)?;
    Ok(Json(IssuedCertificate {
        certificate,
        authority: issuing.trusted.clone(),
        issued_at: now,
        expires_at: now.checked_add(VALIDITY).unwrap_or(now),
    }))
}
