//! The enrolment of agents: the tokens with which they join, and the keys by which the controller knows them.

use std::time::Duration;

use periapt_host_api::{AgentName, Digest, ErrorCode, Refusal, Timestamp, agent::Admission};

use super::{
    joining::{MAX_ENROLMENTS, check_validity, refused, second},
    pool,
    register::disconnected,
};
use crate::{
    entity::{AgentPool, Enrolment, EntityKey, JoinToken},
    input::Environment,
    root::{Root, changes::Changes},
};

/// The most models that the refusal of a removal names.
const MAX_NAMED: usize = 10;

/// Admits an agent: a token with this digest lets it join once. An earlier token of the name is refused from now on.
pub(crate) fn admit(root: &Root, admission: &Admission, env: &Environment) -> Result<Changes, Refusal> {
    let Admission { agent, token, valid_for, again } = admission;
    let known = root.enrolment(agent);
    let has_joined = known.is_some_and(|known| known.key.is_some());
    if has_joined && !again {
        return Err(Refusal::already_exists(format!("agent {:?} has joined already", agent.as_str()))
            .about(format!("agent {agent}")));
    }
    if known.is_none() && root.enrolment_count() >= MAX_ENROLMENTS {
        let text =
            format!("{MAX_ENROLMENTS} agents are enrolled, which is the most; remove-agent frees names");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    check_validity(*valid_for)?;
    let expires_at = env.now.checked_add(Duration::from_secs(*valid_for)).unwrap_or(Timestamp::MAX);
    let token = Some(JoinToken { digest: *token, expires_at, used_at: None });
    let key = known.and_then(|known| known.key);
    Ok(stored(Enrolment { agent: agent.clone(), key, token }))
}

/// The way in which a token lets an agent in.
enum Admitted<'a> {
    /// The agent has joined with this key already.
    Joined,
    /// By a token for its name alone.
    Alone(&'a Enrolment, &'a JoinToken),
    /// By the token of a pool.
    InPool(&'a AgentPool),
}

/// Lets an agent join with a token: from now on it is known by this key. The same join again changes nothing.
pub(crate) fn join(
    root: &Root,
    agent: &AgentName,
    key: Digest,
    token: Digest,
    env: &Environment,
) -> Result<Changes, Refusal> {
    Ok(match usable(root, agent, key, token, env.now)? {
        Admitted::Joined => Changes::default(),
        Admitted::Alone(enrolment, known) => {
            let token = Some(JoinToken { used_at: Some(env.now), ..known.clone() });
            stored(Enrolment { agent: enrolment.agent.clone(), key: Some(key), token })
        }
        Admitted::InPool(pool) => pool::join(pool, agent, key),
    })
}

/// Refuses a join whose token lets no agent of this name and key in. The refusal says why: the holder of a token may
/// know its purpose.
///
/// # Errors
/// Permission denied, or too many agents are enrolled.
pub fn check_join(
    root: &Root,
    agent: &AgentName,
    key: Digest,
    token: Digest,
    now: Timestamp,
) -> Result<(), Refusal> {
    usable(root, agent, key, token, now).map(drop)
}

/// Returns the way in which a token lets an agent in.
fn usable<'a>(
    root: &'a Root,
    agent: &AgentName,
    key: Digest,
    token: Digest,
    now: Timestamp,
) -> Result<Admitted<'a>, Refusal> {
    let enrolled = root.enrolment(agent);
    let has_joined = enrolled.is_some_and(|enrolment| enrolment.key == Some(key));
    let known = enrolled.and_then(|enrolment| enrolment.token.as_ref());
    if let Some((enrolment, known)) = enrolled.zip(known.filter(|known| known.digest == token)) {
        return match known.used_at {
            Some(_) if has_joined => Ok(Admitted::Joined),
            Some(at) => Err(refused(agent, &format!("the join token was used at {}", second(at)))),
            None if now >= known.expires_at => {
                Err(refused(agent, &format!("the join token expired at {}", second(known.expires_at))))
            }
            None => Ok(Admitted::Alone(enrolment, known)),
        };
    }
    if let Some(pool) = root.pools().find(|pool| pool.token == token) {
        if has_joined {
            return Ok(Admitted::Joined);
        }
        pool::check(root, pool, agent, now)?;
        return Ok(Admitted::InPool(pool));
    }
    let text = match root.agent_with_token(&token) {
        Some(other) => format!("the join token is for agent {:?}", other.as_str()),
        None => "the join token is not one of this controller, or was replaced by a newer one".to_owned(),
    };
    Err(refused(agent, &text))
}

/// Removes an agent: its key and its token are refused from now on. An agent with machines is removed by force alone;
/// its machines then stay, as those of an agent that is gone.
pub(crate) fn remove(
    root: &Root,
    agent: &AgentName,
    force: bool,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let about = |refusal: Refusal| refusal.about(format!("agent {agent}"));
    if root.enrolment(agent).is_none() && root.agent(agent).is_none() {
        return Err(about(Refusal::not_found(format!("agent {:?} not found", agent.as_str()))));
    }
    let mut names = root.models_at(agent).map(|(_, state)| state.model().name.as_str());
    let named: Vec<&str> = names.by_ref().take(MAX_NAMED).collect();
    if !named.is_empty() && !force {
        let more = match names.next() {
            Some(_) => " and others",
            None => "",
        };
        let text = format!(
            "agent {:?} has machines or storage of {}{more}; remove their units first, or use --force",
            agent.as_str(),
            named.join(", ")
        );
        return Err(about(Refusal::new(ErrorCode::Conflict, text)));
    }
    let mut changes = disconnected(agent, env);
    if root.enrolment(agent).is_some() {
        changes.puts.insert(EntityKey::Enrolment(agent.clone()), None);
    }
    if named.is_empty() && root.agent(agent).is_some() {
        changes.puts.insert(EntityKey::Agent(agent.clone()), None);
    }
    Ok(changes)
}

fn stored(enrolment: Enrolment) -> Changes {
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Enrolment(enrolment.agent.clone()), Some(enrolment.into()));
    changes
}
