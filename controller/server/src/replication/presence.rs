//! The exchange of agents' connections: each following controller tells the leading one which agents are connected to
//! it, and is told which are connected to any of them. None of it is in the log: it is over with the connections.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use periapt_host_api::{
    AgentName, Timestamp,
    command::{LogUse, MemberInfo},
};
use periapt_log::LogLeader;
use periapt_model::{Changes, Presence as AgentPresence, Root, VolatileChange};
use serde::{Deserialize, Serialize};

use super::{DurablePosition, Freshness, Links, Members, Role, RoleReceiver};
use crate::{
    clock::Clock,
    presence::{Presence, PresenceReport},
};

/// The interval of reports.
pub(crate) const REPORT_EVERY: Duration = Duration::from_secs(2);

/// The longest wait for the answer to a report.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// The connections of all agents, as the leading controller knows them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct KnownPresence {
    pub(crate) agents: Vec<KnownAgent>,
    /// All controllers.
    pub(crate) members: Vec<MemberInfo>,
    /// The time of the leading controller's clock; none from controllers of earlier versions.
    #[serde(default)]
    pub(crate) now: Option<Timestamp>,
    /// The number of the program's target that the reporting controller is to take now.
    #[serde(default)]
    pub(crate) replace: Option<u64>,
    /// The entries that the log has; none from controllers of earlier versions.
    #[serde(default)]
    pub(crate) log: Option<LogUse>,
}

/// The connection of one agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct KnownAgent {
    agent: AgentName,
    connected: bool,
    last_seen: Timestamp,
    /// The time since then, in milliseconds of the leading controller's monotonic clock: the clocks differ.
    quiet_ms: u64,
}

impl KnownPresence {
    /// Returns the connections that a state knows, for one reporting controller.
    pub(crate) fn of(root: &Root, members: &Members, clock: &dyn Clock, member: &str) -> Self {
        let lease_now_ms = clock.monotonic_ms();
        let known = root.agents().filter_map(|agent| {
            let AgentPresence { connected, last_seen, since_ms } = root.presence(&agent.name)?;
            let quiet_ms = lease_now_ms.saturating_sub(since_ms);
            Some(KnownAgent { agent: agent.name.clone(), connected, last_seen, quiet_ms })
        });
        let (list, now, replace) = (members.list(), Some(clock.now()), members.order_for(member));
        Self { agents: known.collect(), members: list, now, replace, log: members.log() }
    }

    /// Returns the changes that bring a following controller's state up to date; none if there are none.
    pub(crate) fn changes(self, root: &Root, lease_now_ms: u64) -> Option<Changes> {
        let news = self.agents.into_iter().filter(|known| {
            root.presence(&known.agent).is_none_or(|presence| presence.connected != known.connected)
        });
        let volatile: Vec<_> = news
            .map(|KnownAgent { agent, connected, last_seen, quiet_ms }| {
                let since_ms = lease_now_ms.saturating_sub(quiet_ms);
                let presence = AgentPresence { connected, last_seen, since_ms };
                VolatileChange::Presence { agent, presence }
            })
            .collect();
        (!volatile.is_empty()).then(|| Changes { volatile, ..Changes::default() })
    }
}

/// The source of a following controller's reports.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) links: Links,
    pub(crate) freshness: Freshness,
    pub(crate) role: RoleReceiver,
    pub(crate) presence: Presence,
    pub(crate) state: crate::published::Subscription,
    pub(crate) durable: DurablePosition,
    pub(crate) members: Members,
    pub(crate) member: String,
    pub(crate) url: String,
}

impl Reporter {
    /// Reports at intervals and after each change, and returns the answers.
    pub(crate) fn answers(self) -> BoxStream<'static, KnownPresence> {
        stream::unfold((self, None), |(mut reporter, mut told)| async move {
            loop {
                let leader = reporter.leader().await?;
                let (changes, agents) = reporter.presence.open();
                if told == Some((leader.term, changes)) {
                    let pause = tokio::time::sleep(REPORT_EVERY);
                    tokio::select! {
                        () = pause => {}
                        () = reporter.presence.changed() => {}
                        gone = reporter.role.changed() => gone.ok()?,
                    }
                    told = None;
                    continue;
                }
                match reporter.report(&leader, agents).await {
                    Some(known) => {
                        told = Some((leader.term, changes));
                        return Some((known, (reporter, told)));
                    }
                    None => tokio::time::sleep(REPORT_EVERY / 4).await,
                }
            }
        })
        .boxed()
    }

    /// Asks a controller that leads for its time, once.
    pub(super) async fn time_of(&self, leader: &LogLeader) -> Option<Timestamp> {
        let (_, agents) = self.presence.open();
        self.report(leader, agents).await?.now
    }

    async fn leader(&mut self) -> Option<LogLeader> {
        let known = self.role.wait_for(|role| matches!(role, Role::Following(Some(_)))).await.ok()?;
        match &*known {
            Role::Following(leader) => leader.clone(),
            Role::Leading(_) => None,
        }
    }

    async fn report(&self, leader: &LogLeader, agents: BTreeSet<AgentName>) -> Option<KnownPresence> {
        let (term, member, url) = (leader.term.0, self.member.clone(), self.url.clone());
        let applied = self.state.current().revision().0;
        let durable = self.durable.get().0;
        let stale = self.freshness.is_stale();
        let (level, program) = (self.members.own_level(), self.members.running());
        let failing_workers = self.members.failing_workers();
        let report = PresenceReport {
            term,
            member,
            applied,
            durable,
            level,
            stale,
            program,
            failing_workers,
            url,
            agents,
        };
        let client = self.links.to(&leader.announcement.url).ok()?;
        let answer = tokio::time::timeout(ANSWERED_WITHIN, client.report_presence(&report)).await;
        match answer {
            Ok(Ok(known)) => Some(known),
            Ok(Err(error)) => {
                tracing::debug!(%error, "the leading controller was not told which agents are connected");
                None
            }
            Err(_) => None,
        }
    }
}
