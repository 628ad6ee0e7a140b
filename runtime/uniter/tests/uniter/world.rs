//! A world of one unit, `a/0`, in a laboratory. Commands change the controller's own model, agents run the other
//! units, and the test takes the unit's steps one by one.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use periapt_host_api::{
    Digest, ModelUuid, RelationId, Timestamp, UnitName,
    command::Command,
    event::Event,
    record::UnitRecord,
    view::{ApplicationView, RelationView, UnitView, View},
};
use periapt_lab::{Claims, Lab, LabError};
use periapt_uniter::{
    Decision, DeployRun, HookEnd, HookRun, Jitter, before_hook, deploy_failed, deployed, hook_ended,
    idle_effect, resolve,
};

mod charm;
mod commit;
mod model;
mod remote;
mod subordinate;

pub(crate) use charm::{BATCHING, TEXTUAL};

/// The most steps of a unit until it settles: many times more than any test needs.
const MAX_STEPS: usize = 500;

/// The agent of the unit.
const HOST: &str = "host";

/// Slightly more than the duration of a lease in the laboratory.
const LEASE: Duration = Duration::from_secs(64);

pub(crate) struct World {
    lab: Lab,
    /// The view of the unit's agent.
    pub(crate) view: View,
    pub(crate) unit: UnitName,
    pub(crate) now: Timestamp,
    /// The declarations of `a` beside those of every test, in the form of `charmcraft.yaml`.
    declares: String,
    /// The charms that `a` has had, with their versions.
    versions: BTreeMap<Digest, u64>,
    /// The relations, by the endpoint of `a`.
    relations: BTreeMap<String, RelationId>,
    /// The applications of other models.
    abroad: BTreeMap<String, ModelUuid>,
    /// The number of writes so far.
    writes: u64,
    /// The hooks and deployments since the last check, as text.
    trace: Vec<String>,
    /// All committed events, by a run or by a skip.
    pub(crate) committed: Vec<Event>,
    /// The indices of moot events: their relation is gone, or the charm is told in another form.
    pub(crate) passed_over: Vec<usize>,
    /// The statuses so far, the newest last.
    pub(crate) statuses: Vec<String>,
    /// The names of hooks that fail; `deploy` stands for deployments.
    pub(crate) failing: BTreeSet<String>,
    /// The names of hooks in which the charm sets a status.
    pub(crate) setting_status: BTreeSet<String>,
}

/// Lets the world settle, and compares the hooks since the last check with the expected ones.
#[track_caller]
pub(crate) fn check(world: &mut World, expected: &[&str]) -> Decision {
    let rest = world.settle();
    assert_eq!(world.take_trace(), expected);
    rest
}

impl World {
    /// Creates a new unit that leads its application, without relations.
    pub(crate) fn new() -> Self {
        Self::declaring("")
    }

    /// Creates such a unit of a charm with further declarations.
    pub(crate) fn declaring(declares: &str) -> Self {
        let mut world = Self::leaderless(declares);
        world.lead_by("a/0");
        world
    }

    /// Creates such a unit of a charm with peers on the endpoint `ring`.
    pub(crate) fn peered() -> Self {
        let mut world = Self::declaring("peers:\n  ring: {interface: ring}\n");
        world.peers("ring");
        world
    }

    /// Creates a new unit without a claim of leadership.
    pub(crate) fn leaderless(declares: &str) -> Self {
        let lab = Lab::new(1).unwrap();
        let mut world = Self {
            view: View::default(),
            unit: "a/0".parse().unwrap(),
            now: lab.now(),
            lab,
            declares: declares.to_owned(),
            versions: BTreeMap::new(),
            relations: BTreeMap::new(),
            abroad: BTreeMap::new(),
            writes: 0,
            trace: Vec::new(),
            committed: Vec::new(),
            passed_over: Vec::new(),
            statuses: Vec::new(),
            failing: BTreeSet::new(),
            setting_status: BTreeSet::new(),
        };
        world.lab.set_claims(HOST, Claims::Unsent).unwrap();
        let charm = world.charm(1);
        world.change(|lab| lab.deploy_to("a", &charm, 1, HOST));
        world
    }

    /// Creates the unit of [`World::new`], and lets it start and come to rest.
    pub(crate) fn started() -> Self {
        let mut world = Self::new();
        check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start"]);
        world
    }

    /// Creates such a started unit with peers.
    pub(crate) fn started_with_peers() -> Self {
        let mut world = Self::peered();
        check(
            &mut world,
            &["deploy 1", "install", "ring-relation-created", "leader-elected", "config-changed", "start"],
        );
        world
    }

    /// Changes the model, and runs the controller's due work. The unit's agent then has the new view.
    #[track_caller]
    fn change<T>(&mut self, change: impl FnOnce(&mut Lab) -> Result<T, LabError>) -> T {
        let done = self.attempt(change);
        done.unwrap()
    }

    /// Does the same for a change that may be refused.
    fn attempt<T>(&mut self, change: impl FnOnce(&mut Lab) -> Result<T, LabError>) -> Result<T, LabError> {
        let done = change(&mut self.lab);
        self.lab.tend().unwrap();
        self.view = self.lab.mirror(HOST).unwrap();
        self.now = self.lab.now();
        done
    }

    /// Runs a command of an operator.
    #[track_caller]
    fn command(&mut self, command: &Command) {
        self.change(|lab| lab.command(command));
    }

    pub(crate) fn application(&self) -> &ApplicationView {
        &self.view.applications[self.unit.application()]
    }

    pub(crate) fn me(&self) -> &UnitView {
        &self.view.units[&self.unit]
    }

    pub(crate) fn record(&self) -> &UnitRecord {
        &self.me().record
    }

    /// Returns the newest relation of an endpoint.
    #[track_caller]
    pub(crate) fn id(&self, endpoint: &str) -> RelationId {
        self.relations[endpoint]
    }

    pub(crate) fn relation(&self, endpoint: &str) -> Option<&RelationView> {
        self.view.relations.get(self.relations.get(endpoint)?)
    }

    pub(crate) fn is_member(&self, endpoint: &str) -> bool {
        self.relation(endpoint).is_some_and(|relation| relation.members.contains_key(&self.unit))
    }

    pub(crate) fn decide(&self) -> Decision {
        let decision = resolve(&self.view, &self.unit, self.now);
        assert_eq!(decision, resolve(&self.view, &self.unit, self.now), "the same input, another answer");
        decision
    }

    /// Returns the due hook.
    #[track_caller]
    pub(crate) fn due(&self) -> HookRun {
        match self.decide() {
            Decision::RunHook(run) => *run,
            other => panic!("no hook is due: {other:?}"),
        }
    }

    /// Takes one step. Returns the decision if no work is due.
    pub(crate) fn step(&mut self) -> Option<Decision> {
        match self.decide() {
            Decision::RunHook(run) => self.run(&run),
            Decision::Deploy(run) => self.deploy(&run),
            Decision::Commit(progress) => self.apply(*progress),
            rest => return Some(rest),
        }
        None
    }

    /// Takes steps until a condition holds.
    #[track_caller]
    pub(crate) fn step_until(&mut self, wanted: impl Fn(&Self) -> bool) {
        for _ in 0..MAX_STEPS {
            if wanted(self) {
                return;
            }
            if let Some(rest) = self.step() {
                panic!("it came to rest before: {rest:?}");
            }
        }
        panic!("it never came to that: {:?}", self.trace);
    }

    /// Takes steps until no work is due.
    #[track_caller]
    pub(crate) fn settle(&mut self) -> Decision {
        for _ in 0..MAX_STEPS {
            if let Some(rest) = self.step() {
                if matches!(rest, Decision::Idle { .. }) {
                    let effect = idle_effect(&self.view, &self.unit);
                    self.tell(effect);
                    assert_eq!(idle_effect(&self.view, &self.unit), None);
                }
                return rest;
            }
        }
        panic!("it never settles: {:?}", self.trace);
    }

    /// Sends the effects before a hook.
    pub(crate) fn begin(&mut self, run: &HookRun) {
        self.tell(before_hook(run));
    }

    fn run(&mut self, run: &HookRun) {
        let name = run.event.hook_name();
        self.begin(run);
        let status_set = self.setting_status.contains(&name);
        let failed = self.failing.contains(&name);
        let end = match failed {
            true => HookEnd::Failed { message: "broken".to_owned(), status_set },
            false => HookEnd::Handled { status_set },
        };
        self.trace.push(text(&run.event) + if failed { " FAILED" } else { "" });
        self.end(run, end);
    }

    pub(crate) fn end(&mut self, run: &HookRun, end: HookEnd) {
        if !matches!(end, HookEnd::Failed { .. }) {
            self.committed.push(run.event.clone());
        }
        self.apply(hook_ended(run, end, self.now, Jitter::NONE));
    }

    fn deploy(&mut self, run: &DeployRun) {
        let version = self.versions[&run.charm.digest];
        if self.failing.contains("deploy") {
            self.trace.push(format!("deploy {version} FAILED"));
            self.apply(deploy_failed(run, "no room", self.now, Jitter::NONE));
        } else {
            self.trace.push(format!("deploy {version}"));
            self.apply(deployed(run));
        }
    }

    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }
}

/// Formats an event: `db-relation-departed b/0`, with the departing unit if it is not the remote one.
fn text(event: &Event) -> String {
    let mut text = event.hook_name();
    match (event.remote_unit(), event) {
        (Some(unit), _) => text += &format!(" {unit}"),
        (None, Event::RelationChanged { relation, .. }) => {
            text += &format!(" {}", relation.remote_application)
        }
        (None, Event::RelationBatch { relation, batch }) => {
            if batch.application_changed {
                text += &format!(" {}", relation.remote_application);
            }
            for (sign, units) in [('+', &batch.joined), ('~', &batch.changed), ('-', &batch.departed)] {
                units.iter().for_each(|unit| text += &format!(" {sign}{unit}"));
            }
        }
        _ => {}
    }
    match event.departing_unit() {
        Some(departing) if Some(departing) != event.remote_unit() => text + &format!(" ({departing} leaves)"),
        _ => text,
    }
}
