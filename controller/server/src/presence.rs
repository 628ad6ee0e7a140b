//! The connected agents: those with an open stream, at this controller or at another one of the same log. This task
//! tells the model about changes, and repeats refused commands. It runs where the controller leads.

mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{
    AgentName, Level,
    command::{Caller, FailingWorker},
    program::RunningProgram,
};
use periapt_model::{Input, Root, WorkerCommand};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    published::{Published, Subscription},
    supervision::bounded,
    writer::{Commands, QueueKey},
};

pub(crate) use report::{PresenceReport, REPORT_HELD};

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
    /// The newest reports of other controllers, by their names.
    reports: BTreeMap<String, MemberReport>,
    /// The number of openings and ends of streams so far.
    changes: u64,
}

/// The newest report of another controller.
#[derive(Debug, Clone)]
pub(crate) struct MemberReport {
    /// The last position of the log that it has applied.
    pub(crate) applied: u64,
    /// The last position whose effect is durable on its disk.
    pub(crate) durable: u64,
    /// The highest level that its program knows.
    pub(crate) level: Level,
    /// True if it is not up to date with the log.
    pub(crate) stale: bool,
    /// The URL by which clients reach it.
    pub(crate) url: String,
    /// The program that it runs.
    pub(crate) program: Option<RunningProgram>,
    /// Its workers that failed a short while ago.
    pub(crate) failing_workers: Vec<FailingWorker>,
    agents: BTreeSet<AgentName>,
    at: Instant,
}

impl Streams {
    /// Returns true if an agent is connected to any controller.
    fn has(&self, agent: &AgentName) -> bool {
        self.open.contains_key(agent) || self.reports.values().any(|report| report.agents.contains(agent))
    }

    /// Forgets reports of controllers that are gone.
    fn forget_old(&mut self, now: Instant) {
        let before = self.reports.len();
        self.reports.retain(|_, report| now.duration_since(report.at) < REPORT_HELD);
        if self.reports.len() != before {
            self.changes += 1;
        }
    }
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

    /// Returns the agents with open streams at this controller, and the number of changes so far.
    pub(crate) fn open(&self) -> (u64, BTreeSet<AgentName>) {
        let streams = self.lock();
        (streams.changes, streams.open.keys().cloned().collect())
    }

    /// Returns true if an agent has an open stream at this controller.
    pub(crate) fn is_here(&self, agent: &AgentName) -> bool {
        self.lock().open.contains_key(agent)
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Takes the report of another controller.
    pub(crate) fn report(&self, report: PresenceReport) {
        let PresenceReport { member, applied, durable, level, stale, url, program, agents, .. } = report;
        let failing_workers = bounded(report.failing_workers);
        let mut streams = self.lock();
        if streams.reports.get(&member).is_none_or(|before| before.agents != agents) {
            streams.changes += 1;
        }
        let at = Instant::now();
        let report =
            MemberReport { applied, durable, level, stale, url, program, failing_workers, agents, at };
        streams.reports.insert(member, report);
        drop(streams);
        self.0.changed.notify_one();
    }

    /// Returns the newest reports of other controllers, by their names.
    pub(crate) fn members(&self) -> BTreeMap<String, MemberReport> {
        let mut streams = self.lock();
        streams.forget_old(Instant::now());
        streams.reports.clone()
    }

    /// Returns the commands that bring the model's presence up to date.
    fn differences(&self, root: &Root) -> Vec<WorkerCommand> {
        let streams = self.lock();
        let known = |agent: &AgentName| root.presence(agent).is_some_and(|presence| presence.connected);
        let reported = streams.reports.values().flat_map(|report| &report.agents);
        let here: BTreeSet<&AgentName> = streams.open.keys().chain(reported).collect();
        let come = here.into_iter().filter(|agent| !known(agent)).cloned().map(WorkerCommand::AgentConnected);
        let gone = root
            .agents()
            .map(|agent| &agent.name)
            .filter(|agent| known(agent) && !streams.has(agent))
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
            let published = state.seen();
            let (changes, has_reports) = {
                let mut streams = self.lock();
                streams.forget_old(Instant::now());
                (streams.changes, !streams.reports.is_empty())
            };
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
                match (refused, has_reports) {
                    (true, _) => tokio::time::sleep(RETRY).await,
                    // Reports end by time.
                    (false, true) => tokio::time::sleep(REPORT_HELD / 4).await,
                    (false, false) => std::future::pending().await,
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
