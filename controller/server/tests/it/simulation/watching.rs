//! Watchers of a simulation: of an agent's view, and of a model's status. Their streams break off, and they go on at
//! another controller.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use periapt_client::{Client, Identity, Options, Seen};
use periapt_host_api::{
    AgentName, ModelUuid, Revision, Timestamp,
    agent::AgentAssignments,
    api::{ModelSelector, WatchPosition},
    command::{Caller, Command, Placement},
    status::FullStatus,
    timing::WATCH_SILENCE,
    view::View,
};
use periapt_model::{Root, StatusContext, full_status, view};
use tokio::time::timeout;

use super::{Mutation, agents::AGENTS, chance::Chance, fold::Fold, witness::Event, world::World};
use crate::{fixture::application, watches::set_title};

/// The number of streams that each watcher opens.
const STREAMS: usize = 30;

/// The units that each operator adds, at most.
const ADDED: usize = 3;

/// All that watchers were shown, each watcher's in its order.
#[derive(Default)]
pub(super) struct Sights(Mutex<Vec<Sight>>);

/// Something that a watcher was shown.
#[derive(Debug, Clone)]
pub(super) enum Sight {
    /// A view of an agent's runner, by the watcher with this number.
    View { watcher: usize, agent: AgentName, view: Box<View> },
    /// An agent's assignments, by the watcher with this number.
    Assignments { watcher: usize, revision: Revision },
    /// A status. The watcher had seen this position before, by the answers and the lines of all its streams; the number is
    /// that of the stream.
    Status { stream: usize, seen: Option<Revision>, shown: Outline },
}

/// The part of a status that follows from the log alone: whether the application is exposed, and its units, with the one
/// that leads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outline {
    is_exposed: bool,
    units: BTreeMap<String, bool>,
}

impl Outline {
    fn of(status: &FullStatus) -> Self {
        let Some(found) = status.applications.get("tiny") else { return Self::default() };
        let units = found.units.iter().map(|(name, unit)| (name.clone(), unit.leader));
        Self { is_exposed: found.exposed, units: units.collect() }
    }
}

/// One watcher.
pub(super) struct Watcher {
    pub(super) number: usize,
    pub(super) world: Arc<World>,
    pub(super) model: ModelUuid,
    pub(super) sights: Arc<Sights>,
    pub(super) chance: Chance,
    pub(super) mutation: Mutation,
}

impl Sights {
    pub(super) fn take(&self) -> Vec<Sight> {
        std::mem::take(&mut self.0.lock())
    }

    fn add(&self, sight: Sight) {
        self.0.lock().push(sight);
    }
}

impl Watcher {
    /// Watches the view of an agent's runner, as a keeper does.
    pub(super) async fn of_view(mut self, agent: AgentName) {
        let (mut seen, mut mirror, mut position) = (Seen::default(), View::default(), None::<WatchPosition>);
        for _ in 0..STREAMS {
            if self.mutation == Mutation::NoPosition {
                (seen, position) = (Seen::default(), None);
            }
            let client = self.client(agent.as_str(), Identity::Agent(agent.clone()), &seen);
            let lasts = self.chance.millis(500..20_000);
            let watched = timeout(lasts, async {
                let Ok(mut frames) = client.watch(&agent, &self.model, position).await else { return };
                while let Ok(Some(Ok(frame))) = timeout(WATCH_SILENCE, frames.next()).await {
                    position = Some(WatchPosition { store: frame.store, revision: frame.to });
                    self.is_shown(frame.to);
                    mirror.apply(frame).unwrap();
                    let view = Box::new(mirror.clone());
                    self.sights.add(Sight::View { watcher: self.number, agent: agent.clone(), view });
                }
            });
            // It closes a stream that lasts: the way to another controller is what is tested.
            let _ = watched.await;
            let (number, position) = (self.number, position.map(|position| position.revision));
            self.world.note(format_args!("watcher {number} leaves its controller at {position:?}"));
            tokio::time::sleep(self.chance.millis(0..1_500)).await;
        }
    }

    /// Watches the assignments of an agent, as a keeper does.
    pub(super) async fn of_assignments(mut self, agent: AgentName) {
        let mut seen = Seen::default();
        for _ in 0..STREAMS {
            if self.mutation == Mutation::NoPosition {
                seen = Seen::default();
            }
            let client = self.client(agent.as_str(), Identity::Agent(agent.clone()), &seen);
            let lasts = self.chance.millis(500..15_000);
            let watched = timeout(lasts, async {
                let Ok(mut assignments) = client.assignments(&agent).await else { return };
                while let Some(Ok(AgentAssignments { revision, .. })) = assignments.next().await {
                    self.is_shown(revision);
                    self.sights.add(Sight::Assignments { watcher: self.number, revision });
                }
            });
            let _ = watched.await;
            tokio::time::sleep(self.chance.millis(0..1_500)).await;
        }
    }

    /// Changes the model, and watches its status.
    pub(super) async fn of_status(mut self, caller: &'static str) {
        let (seen, mut newest, mut added) = (Seen::default(), None::<Revision>, 0);
        let selector = ModelSelector::from(self.model);
        for round in 0..STREAMS {
            let told = match self.mutation {
                Mutation::NoPosition => Seen::default(),
                _ => seen.clone(),
            };
            let sees =
                |newest: Option<Revision>| newest.max(told.position().map(|position| position.revision));
            if self.chance.one_in(2) {
                let client = self.client(caller, Identity::Local, &told);
                let command = self.command(round, &mut added);
                self.world.note(format_args!("{caller}: {command:?}"));
                let _ = client.command(&selector, command).await;
                newest = sees(newest);
            }
            let client = self.client(caller, Identity::Local, &told);
            let lasts = self.chance.millis(200..12_000);
            let stream = self.number * 1_000 + round;
            let watched = timeout(lasts, async {
                let Ok(mut statuses) = client.watch_status(&selector).await else { return };
                newest = sees(newest);
                while let Some(Ok(status)) = statuses.next().await {
                    let shown = Outline::of(&status);
                    self.sights.add(Sight::Status { stream, seen: newest, shown });
                    newest = sees(newest);
                }
            });
            let _ = watched.await;
            tokio::time::sleep(self.chance.millis(0..4_000)).await;
        }
    }

    /// Tells the witness that this watcher is shown the state at a position.
    fn is_shown(&self, position: Revision) {
        self.world.witness.note(Event::Shown { to: self.number, position });
    }

    /// Returns a command whose effect is in the status or in the views.
    fn command(&mut self, round: usize, added: &mut usize) -> Command {
        match self.chance.below(4) {
            0 => Command::Expose { application: application("tiny"), endpoints: BTreeMap::new() },
            1 => Command::Unexpose { application: application("tiny"), endpoints: Vec::new() },
            2 if *added < ADDED => {
                *added += 1;
                Command::AddUnits {
                    application: application("tiny"),
                    count: 1,
                    placement: vec![Placement::Agent(self.chance.pick(&AGENTS).parse().unwrap())],
                    attach_storage: Vec::new(),
                }
            }
            _ => set_title(format!("{}-{round}", self.number)),
        }
    }

    /// Returns a client that tries the controllers in some order.
    fn client(&mut self, caller: &str, identity: Identity, seen: &Seen) -> Client {
        let hosts = &self.world.hosts;
        let order = self.chance.order(hosts.len());
        let addresses: Vec<SocketAddr> = order.iter().map(|index| hosts[*index].address).collect();
        let mut options = Options::in_memory(self.world.network.caller(caller), &addresses, identity)
            .with_seen(seen.clone())
            .with_retry_timeout(Duration::from_secs(3))
            .with_busy_retry_timeout(Duration::from_secs(3));
        options.answer_within = Duration::from_secs(8);
        Client::new(options).unwrap()
    }
}

/// Checks that each watcher was shown states of the log, and none that is older than what it saw before.
///
/// # Errors
/// H1, H5
pub(super) fn never_less(fold: &Fold, model: &ModelUuid, sights: &[Sight]) -> Result<(), String> {
    let outlines: Vec<Option<Outline>> = fold.roots.iter().map(|root| outline_at(root, model)).collect();
    let mut seen: BTreeMap<usize, Revision> = BTreeMap::new();
    let mut statuses: BTreeMap<usize, usize> = BTreeMap::new();
    for sight in sights {
        match sight {
            Sight::View { watcher, agent, view: shown } => {
                not_before(seen.entry(*watcher).or_default(), shown.revision)
                    .map_err(|law| format!("{law}, to watcher {watcher} of {agent}"))?;
                let caller = Caller::Runner { agent: agent.clone(), model: *model };
                let root = fold.roots.get(usize::try_from(shown.revision.0).unwrap());
                let expected = root.map(|root| view(root, &caller));
                if expected.as_ref() != Some(&**shown) {
                    return Err(format!(
                        "H1: watcher {watcher} is shown another view at {}: {shown:#?} and not {expected:#?}",
                        shown.revision
                    ));
                }
            }
            Sight::Assignments { watcher, revision } => {
                not_before(seen.entry(*watcher).or_default(), *revision)
                    .map_err(|law| format!("{law}, to watcher {watcher} of assignments"))?;
            }
            Sight::Status { stream, seen, shown } => {
                let seen = usize::try_from(seen.unwrap_or_default().0).unwrap();
                let floor = statuses.entry(*stream).or_default();
                let from = seen.max(*floor);
                let at = |from: usize| {
                    (from..outlines.len()).find(|position| outlines[*position].as_ref() == Some(shown))
                };
                *floor = at(from).ok_or_else(|| {
                    let law = if at(0).is_some() { "H5: older than" } else { "H1: at no position; seen" };
                    format!("{law} {from}, stream {stream}: {shown:?}")
                })?;
            }
        }
    }
    Ok(())
}

fn not_before(seen: &mut Revision, shown: Revision) -> Result<(), String> {
    if shown < *seen {
        return Err(format!("H5: {shown} is shown after {seen}"));
    }
    *seen = shown;
    Ok(())
}

fn outline_at(root: &Root, model: &ModelUuid) -> Option<Outline> {
    let context = StatusContext {
        now: Timestamp::UNIX_EPOCH,
        lease_now_ms: 0,
        version: String::new(),
        engine: String::new(),
        problems: Vec::new(),
    };
    full_status(root, model, &context).map(|status| Outline::of(&status))
}
