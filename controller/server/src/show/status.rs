//! The status of a model, and the info of the controller.

use std::{collections::BTreeMap, sync::Arc};

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    command::{ControllerInfo, FailingWorker, MemberInfo},
    status::{FullStatus, MemberStatus},
};
use periapt_model::{StatusContext, full_status};

use crate::{clock::Clock, published::Published, replication::Members, supervision::WorkerHealth};

/// The most failing workers that a status names: one line of each is read by people.
const MAX_FAILURES: usize = 16;

/// The data of a status or an info that is in no model: the time, this version, the engine of the agents, and where
/// controllers are.
#[derive(Clone)]
pub(crate) struct StatusSource {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) engine: Arc<str>,
    /// The URLs of the controllers of this store.
    pub(crate) addresses: Arc<[String]>,
    /// The object store that has the blobs, in words.
    pub(crate) blobs: Option<Arc<str>>,
    /// The workers that failed a short while ago.
    pub(crate) workers: WorkerHealth,
    /// The controllers of the same log.
    pub(crate) members: Members,
}

impl StatusSource {
    /// Returns the status of a model in a state, if the model exists.
    pub(crate) fn status_of(&self, published: &Published, model: &ModelUuid) -> Option<FullStatus> {
        let members = self.members.list();
        let context = StatusContext {
            now: self.clock.now(),
            lease_now_ms: self.clock.monotonic_ms(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.to_string(),
            problems: published.problem.iter().cloned().chain(self.failures(&members)).collect(),
        };
        let mut status = full_status(&published.root, model, &context)?;
        status.controller.members = shown(members);
        Some(status)
    }

    /// Returns what the workers of these controllers, or of this one if it is alone, failed with, a line each.
    fn failures(&self, members: &[MemberInfo]) -> Vec<String> {
        let line = |of: &str, FailingWorker { name, failures, message, .. }: &FailingWorker| match failures {
            1 => format!("worker {name}{of} failed once: {message}"),
            failures => format!("worker {name}{of} failed {failures} times: {message}"),
        };
        if members.is_empty() {
            return self.workers.failing().iter().map(|worker| line("", worker)).collect();
        }
        let of_members = members.iter().flat_map(|member| {
            let of = format!(" of controller {}", member.name);
            member.failing_workers.iter().map(move |worker| line(&of, worker))
        });
        of_members.take(MAX_FAILURES).collect()
    }

    /// Returns the controller's info.
    pub(crate) fn info(&self, published: &Published) -> Result<ControllerInfo, Refusal> {
        let controller = published
            .root
            .controller()
            .ok_or_else(|| Refusal::new(ErrorCode::TryAgain, "the controller has not started yet"))?;
        Ok(ControllerInfo {
            name: controller.name.clone(),
            uuid: controller.uuid,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.to_string(),
            store: published.store,
            revision: published.revision(),
            writable: published.problem.is_none(),
            problem: published.problem.clone(),
            stale: false,
            level: controller.level,
            blobs: self.blobs.as_deref().map(str::to_owned),
            members: self.members.list(),
            log: None,
            failing_workers: self.workers.failing(),
            program: None,
            target: None,
            addresses: self.addresses.to_vec(),
        })
    }
}

/// Returns controllers of one log as a status shows them, if there are several.
fn shown(members: Vec<MemberInfo>) -> BTreeMap<String, MemberStatus> {
    if members.len() < 2 {
        return BTreeMap::new();
    }
    let newest = members.iter().map(|member| member.revision.0).max().unwrap_or_default();
    let one = |MemberInfo { name, role, revision, stale, away, .. }: MemberInfo| {
        // One that does not hear of the log reports nothing, and shows nothing any more.
        (name, MemberStatus { role, revision, behind: newest - revision.0, stale: stale || away })
    };
    members.into_iter().map(one).collect()
}
