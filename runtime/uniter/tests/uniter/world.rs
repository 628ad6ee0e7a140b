//! A world of one unit, `a/0`: its view, which a test changes at will, and the part of the controller that applies
//! what the unit commits.

use std::collections::BTreeSet;

use periapt_host_api::{
    RelationId, Revision, Timestamp, UnitName,
    event::Event,
    settings::ModelConfig,
    status::Life,
    view::{ModelView, View},
};
use periapt_uniter::{
    Decision, DeployRun, HookEnd, HookRun, Jitter, before_hook, deploy_failed, deployed, hook_ended,
    idle_effect, resolve,
};

mod controller;
mod model;

pub(crate) use model::{BATCHING, charm};

/// How many steps a unit may take to settle: many times more than any test needs.
const MAX_STEPS: usize = 500;

pub(crate) struct World {
    pub(crate) view: View,
    pub(crate) unit: UnitName,
    pub(crate) now: Timestamp,
    /// What was run since it was last looked at, as text.
    trace: Vec<String>,
    /// Every event that was committed, by a run or by being skipped.
    pub(crate) committed: Vec<Event>,
    /// Which of these were moot: their relation is gone, or the charm is to hear of it in another form.
    pub(crate) passed_over: Vec<usize>,
    /// Relations that were removed by force; their ids are never used again.
    pub(crate) removed: BTreeSet<RelationId>,
    /// How often the application's leadership changed hands.
    pub(crate) terms: u64,
    /// Statuses that were set, newest last.
    pub(crate) statuses: Vec<String>,
    /// Hooks that fail, by name; `deploy` for bringing a charm into place.
    pub(crate) failing: BTreeSet<String>,
    /// Hooks in which the charm sets a status.
    pub(crate) setting_status: BTreeSet<String>,
}

/// Lets the world settle and compares the hooks that ran since the last look.
#[track_caller]
pub(crate) fn check(world: &mut World, expected: &[&str]) -> Decision {
    let rest = world.settle();
    assert_eq!(world.take_trace(), expected);
    rest
}

impl World {
    /// A new unit that leads its application, without relations.
    pub(crate) fn new() -> Self {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let unit: UnitName = "a/0".parse().unwrap();
        let mut world = Self {
            view: View { revision: Revision(1), ..View::default() },
            unit: unit.clone(),
            now,
            trace: Vec::new(),
            committed: Vec::new(),
            passed_over: Vec::new(),
            removed: BTreeSet::new(),
            terms: 0,
            statuses: Vec::new(),
            failing: BTreeSet::new(),
            setting_status: BTreeSet::new(),
        };
        world.view.model = Some(ModelView {
            uuid: "00000000-0000-0000-0000-000000000001".parse().unwrap(),
            name: "test".parse().unwrap(),
            life: Life::Alive,
            config: ModelConfig::default(),
            spaces: Default::default(),
        });
        world.put_application("a");
        world.put_machine("boot-1", "addresses-1");
        world.put_unit("a/0");
        world.want_charm(1, false);
        world.lead_by("a/0");
        world
    }

    /// The same unit, started and at rest.
    pub(crate) fn started() -> Self {
        let mut world = Self::new();
        check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start"]);
        world
    }

    pub(crate) fn decide(&self) -> Decision {
        let decision = resolve(&self.view, &self.unit, self.now);
        assert_eq!(decision, resolve(&self.view, &self.unit, self.now), "the same input, another answer");
        decision
    }

    /// The hook that is due.
    #[track_caller]
    pub(crate) fn due(&self) -> HookRun {
        match self.decide() {
            Decision::RunHook(run) => *run,
            other => panic!("no hook is due: {other:?}"),
        }
    }

    /// Takes one step; the decision is given back if nothing was to be done.
    pub(crate) fn step(&mut self) -> Option<Decision> {
        match self.decide() {
            Decision::RunHook(run) => self.run(&run),
            Decision::Deploy(run) => self.deploy(&run),
            Decision::Commit(progress) => self.apply(*progress),
            rest => return Some(rest),
        }
        None
    }

    /// Takes steps until the world is as wanted.
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

    /// Takes steps until nothing is to be done.
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

    fn run(&mut self, run: &HookRun) {
        let name = run.event.hook_name();
        self.tell(before_hook(run));
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
        let version = run.charm.modified_version;
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

/// An event as tests write it: `db-relation-departed b/0`, and who departs if it is not the remote unit.
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
