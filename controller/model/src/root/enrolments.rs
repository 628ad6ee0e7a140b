//! Enrolments of agents in the root, and the index of their join tokens.

use std::sync::Arc;

use imbl::OrdMap;
use periapt_host_api::{AgentName, Digest};

use super::{Root, index::Index};
use crate::entity::{AgentPool, Enrolment};

/// The enrolments of all agents at one moment. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct Enrolments(OrdMap<AgentName, Arc<Enrolment>>);

impl Enrolments {
    /// Returns the key of an agent that has joined.
    pub fn key_of(&self, agent: &AgentName) -> Option<Digest> {
        self.0.get(agent)?.key
    }

    /// Returns true if both are the same. Cheap: it compares pointers. A `false` may be wrong, a `true` never is.
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// The agents by the digests of their join tokens. No request looks at every enrolment to find a token.
#[derive(Debug, Clone, Default)]
pub(super) struct JoinTokenIndex(Index<Digest, AgentName>);

impl JoinTokenIndex {
    /// Removes the token of an old enrolment from the index, and adds that of the new one.
    pub(super) fn update(&mut self, old: Option<&Arc<Enrolment>>, new: Option<&Arc<Enrolment>>) {
        let token = |enrolment: &Enrolment| enrolment.token.as_ref().map(|token| token.digest);
        if let Some((token, old)) = old.and_then(|old| Some((token(old)?, old))) {
            self.0.remove(&token, &old.agent);
        }
        if let Some((token, new)) = new.and_then(|new| Some((token(new)?, new))) {
            self.0.insert(token, new.agent.clone());
        }
    }
}

impl Root {
    /// Returns the enrolment of an agent's name.
    pub fn enrolment(&self, agent: &AgentName) -> Option<&Enrolment> {
        self.enrolments.get(agent).map(Arc::as_ref)
    }

    /// Returns the number of enrolments.
    pub(crate) fn enrolment_count(&self) -> usize {
        self.enrolments.len()
    }

    /// Returns the enrolments of all agents. Cheap.
    pub fn enrolments(&self) -> Enrolments {
        Enrolments(self.enrolments.clone())
    }

    /// Returns a pool of agents that may join.
    pub(crate) fn pool(&self, name: &AgentName) -> Option<&AgentPool> {
        self.pools.get(name).map(Arc::as_ref)
    }

    /// Returns the pools of agents that may join, by name. There are few.
    pub(crate) fn pools(&self) -> impl Iterator<Item = &AgentPool> {
        self.pools.values().map(Arc::as_ref)
    }

    /// Returns an agent whose newest join token has this digest.
    pub(crate) fn agent_with_token(&self, token: &Digest) -> Option<&AgentName> {
        self.join_tokens.0.get(token).next()
    }
}
