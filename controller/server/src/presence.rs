//! The connected agents: those with an open stream. This task tells the model about changes, and repeats refused
//! commands.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{AgentName, command::Caller};
use periapt_model::{Input, Root, WorkerCommand};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    published::{Published, Subscription},
    writer::{Commands, QueueKey},
};

/// The delay before a refused command is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// The open streams by agent. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    streams: Mutex<Streams>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Streams {
    open: BTreeMap<AgentName, usize>,
    /// The number of openings and ends of streams so far.
    changes: u64,
}

/// The guard of one open stream of an agent.
#[derive(Debug)]
pub(crate) struct Connected {
    presence: Presence,
    agent: AgentName,
}

impl Presence {
    /// Counts a stream as open until the guard is dropped.
    pub(crate) fn connected(&self, agent: AgentName) -> Connected {
        self.count(&agent, |streams| streams.saturating_add(1));
        Connected { presence: self.clone(), agent }
    }

    fn count(&self, agent: &AgentName, change: impl FnOnce(usize) -> usize) {
        let mut streams = self.lock();
        streams.changes += 1;
        let now = change(streams.open.get(agent).copied().unwrap_or_default());
        match now {
            0 => streams.open.remove(agent),
            open => streams.open.insert(agent.clone(), open),
        };
        drop(streams);
        self.0.changed.notify_one();
    }

    /// Returns the commands that bring the model's presence up to date.
    fn differences(&self, root: &Root) -> Vec<WorkerCommand> {
        let streams = self.lock();
        let known = |agent: &AgentName| root.presence(agent).is_some_and(|presence| presence.connected);
        let come =
            streams.open.keys().filter(|agent| !known(agent)).cloned().map(WorkerCommand::AgentConnected);
        let gone = root
            .agents()
            .map(|agent| &agent.name)
            .filter(|agent| known(agent) && !streams.open.contains_key(*agent))
            .cloned()
            .map(WorkerCommand::AgentDisconnected);
        come.chain(gone).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Streams> {
        // Each call leaves the counts consistent.
        self.0.streams.lock()
    }

    /// Keeps the model's presence up to date until the controller stops.
    pub(crate) async fn run(self, commands: Commands, mut state: Subscription, stop: CancellationToken) {
        // The number of changes and the state for which there was nothing to tell.
        let mut told: Option<(u64, Arc<Published>)> = None;
        loop {
            let (published, changes) = (state.seen(), self.lock().changes);
            let is_told = told.as_ref().is_some_and(|(for_changes, at)| {
                *for_changes == changes && at.root.knows_the_same_agents(&published.root)
            });
            let differences = if is_told { Vec::new() } else { self.differences(&published.root) };
            told = differences.is_empty().then_some((changes, published));
            let mut refused = false;
            for command in differences {
                let input = Input::Worker(command);
                let told = commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0);
                refused |= tokio::select! {
                    () = stop.cancelled() => return,
                    told = told => told.is_err(),
                };
            }
            let again = async {
                match refused {
                    true => tokio::time::sleep(RETRY).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.0.changed.notified() => {}
                alive = state.changed() => if !alive { return },
                () = again => {}
            }
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.presence.count(&self.agent, |streams| streams.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::Revision;
    use periapt_model::{Changes, VolatileChange};

    use super::*;

    #[test]
    fn an_agent_is_connected_while_one_of_its_streams_is_open() {
        let presence = Presence::default();
        let agent = AgentName::new("one").unwrap();
        let root = Root::default();
        assert!(presence.differences(&root).is_empty());
        let first = presence.connected(agent.clone());
        let second = presence.connected(agent.clone());
        assert_eq!(presence.differences(&root), [WorkerCommand::AgentConnected(agent.clone())]);
        drop(first);
        let last_seen = periapt_host_api::Timestamp::UNIX_EPOCH;
        let present = periapt_model::Presence { connected: true, last_seen, since_ms: 0 };
        let told = VolatileChange::Presence { agent: agent.clone(), presence: present };
        let root = root.apply(&Changes { volatile: vec![told], ..Changes::default() }, Revision(0));
        assert!(presence.differences(&root).is_empty());
        drop(second);
        assert!(presence.lock().open.is_empty());
    }
}
