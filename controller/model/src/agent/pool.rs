//! Pools of agents: hosts that are alike join with one token, each under a name of its own.

use std::time::Duration;

use periapt_host_api::{
    AgentName, Digest, ErrorCode, Refusal, Timestamp,
    agent::{MAX_POOL_USES, PoolAdmission},
};

use super::joining::{MAX_ENROLMENTS, check_validity, refused, second};
use crate::{
    entity::{AgentPool, Enrolment, EntityKey},
    input::Environment,
    root::{Root, changes::Changes},
};

/// The most pools. A join looks at all of them, and one commit may delete all.
const MAX_POOLS: usize = 64;

/// Admits agents of a pool. An earlier token of the pool is refused from now on.
pub(crate) fn admit(root: &Root, admission: &PoolAdmission, env: &Environment) -> Result<Changes, Refusal> {
    let PoolAdmission { pool, token, valid_for, uses } = admission;
    check_validity(*valid_for)?;
    if !(1..=MAX_POOL_USES).contains(uses) {
        return Err(Refusal::bad_request(format!("a pool's token lets 1 to {MAX_POOL_USES} agents join")));
    }
    let mut changes = Changes::default();
    let over = root.pools().filter(|known| known.expires_at <= env.now);
    for known in over {
        changes.puts.insert(EntityKey::Pool(known.name.clone()), None);
    }
    let others = root.pools().filter(|known| known.name != *pool && known.expires_at > env.now).count();
    if others >= MAX_POOLS {
        let text = format!(
            "agents of {MAX_POOLS} pools may join, which is the most; `periapt agent-token --pool NAME \
                            --close` frees one"
        );
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    let expires_at = env.now.checked_add(Duration::from_secs(*valid_for)).unwrap_or(Timestamp::MAX);
    let admitted = AgentPool { name: pool.clone(), token: *token, expires_at, uses: *uses };
    changes.puts.insert(EntityKey::Pool(pool.clone()), Some(admitted.into()));
    Ok(changes)
}

/// Refuses a pool's token from now on.
pub(crate) fn close(root: &Root, pool: &AgentName) -> Result<Changes, Refusal> {
    if root.pool(pool).is_none() {
        let text = format!("no agents of pool {:?} may join", pool.as_str());
        return Err(Refusal::not_found(text).about(format!("pool {pool}")));
    }
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::Pool(pool.clone()), None);
    Ok(changes)
}

/// Lets an agent of a pool join: from now on it is known by this key. The last use deletes the pool.
pub(super) fn join(pool: &AgentPool, agent: &AgentName, key: Digest) -> Changes {
    let mut changes = Changes::default();
    let enrolment = Enrolment { agent: agent.clone(), key: Some(key), token: None };
    changes.puts.insert(EntityKey::Enrolment(agent.clone()), Some(enrolment.into()));
    let left = pool.uses.saturating_sub(1);
    let rest = (left > 0).then(|| AgentPool { uses: left, ..pool.clone() }.into());
    changes.puts.insert(EntityKey::Pool(pool.name.clone()), rest);
    changes
}

/// Refuses an agent that may not join with the token of a pool.
pub(super) fn check(root: &Root, pool: &AgentPool, agent: &AgentName, now: Timestamp) -> Result<(), Refusal> {
    let rest = agent.as_str().strip_prefix(pool.name.as_str());
    if !rest.is_some_and(|rest| rest.starts_with('-')) {
        let text = format!("the join token is for agents of names that begin with \"{}-\"", pool.name);
        return Err(refused(agent, &text));
    }
    if now >= pool.expires_at {
        return Err(refused(agent, &format!("the join token expired at {}", second(pool.expires_at))));
    }
    if root.enrolment(agent).is_some() {
        return Err(refused(agent, &format!("the name {:?} is taken in pool {}", agent.as_str(), pool.name)));
    }
    if root.enrolment_count() >= MAX_ENROLMENTS {
        let text = format!("{MAX_ENROLMENTS} agents are enrolled, which is the most");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    Ok(())
}
