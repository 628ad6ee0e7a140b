//! The bench: a local application `a`, a remote application `b` whose units a test may play by hand, and their charms.

use periapt_host_api::{RelationId, status::WorkloadStatus};
use periapt_lab::{Action, Charm, Lab};

/// What every unit without relations runs at first.
pub(crate) const START_UP: [&str; 4] = ["install", "leader-elected", "config-changed", "start"];

/// A charm with a requirer, and an option.
pub(crate) const LOCAL: &str = "
name: local
requires:
  db: {interface: sql}
config:
  options:
    colour: {type: string, default: red}
";

/// The same with a peer endpoint.
pub(crate) const PEERED: &str = "
name: peered
requires:
  db: {interface: sql}
peers:
  ring: {interface: ring}
";

/// A charm that provides what the local one requires.
pub(crate) const REMOTE: &str = "
name: remote
provides:
  db: {interface: sql}
";

pub(crate) fn charm(text: &str) -> Charm {
    Charm::new(&format!("summary: for tests\ndescription: for tests\n{text}")).unwrap()
}

pub(crate) fn lab() -> Lab {
    Lab::new(1).unwrap()
}

/// A laboratory with `units` units of `a` that ran all their first hooks.
pub(crate) fn started(text: &str, units: u32) -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(text), units).unwrap();
    lab.run_until_idle().unwrap();
    lab
}

/// `a/0`, started, and `b` related to it, with `remotes` units in scope that the test plays, on an agent of their own.
pub(crate) struct Related {
    pub(crate) lab: Lab,
    pub(crate) relation: RelationId,
    seen: usize,
}

impl Related {
    /// The relation is made, and the remote units have entered, before the local unit hears of it.
    pub(crate) fn new(remotes: u32) -> Self {
        let mut bench = Self::unheard(remotes);
        bench.lab.release("a/0").unwrap();
        bench
    }

    /// The same, and `a/0` has run all hooks that follow.
    pub(crate) fn joined(remotes: u32) -> Self {
        let mut bench = Self::new(remotes);
        bench.run();
        bench.forget();
        bench
    }

    /// The same as [`Self::new`], but that `a/0` is still held.
    pub(crate) fn unheard(remotes: u32) -> Self {
        let mut lab = started(LOCAL, 1);
        lab.add_agent("far").unwrap();
        lab.deploy_to("b", &charm(REMOTE), remotes, "far").unwrap();
        for number in 0..remotes {
            lab.hold(&format!("b/{number}")).unwrap();
        }
        lab.run_until_idle().unwrap();
        lab.hold("a/0").unwrap();
        let relation = lab.integrate("a:db", "b:db").unwrap();
        for number in 0..remotes {
            lab.by_hand(&format!("b/{number}")).unwrap().enter(relation).unwrap();
        }
        let seen = lab.hooks_of("a/0").len();
        Self { lab, relation, seen }
    }

    /// Lets everything happen.
    pub(crate) fn run(&mut self) {
        self.lab.run_until_idle().unwrap();
    }

    /// The hooks of `a/0` since the last look.
    pub(crate) fn news(&mut self) -> Vec<String> {
        self.run();
        let hooks = self.lab.hooks_of("a/0").split_off(self.seen);
        self.forget();
        hooks
    }

    fn forget(&mut self) {
        self.seen = self.lab.hooks_of("a/0").len();
    }
}

/// A hook that fails.
pub(crate) fn fails() -> Vec<Action> {
    vec![Action::fail("out of luck")]
}

/// A hook that runs one tool.
pub(crate) fn does(line: &str) -> Vec<Action> {
    vec![Action::tool(line)]
}

/// A unit's workload status with its message, as `status` shows them.
pub(crate) fn workload(lab: &Lab, unit: &str) -> (WorkloadStatus, String) {
    let (workload, _) = lab.statuses(unit).unwrap();
    (workload.status, workload.message)
}

/// The hooks of a unit that ran, whatever became of them.
pub(crate) fn runs(lab: &Lab, unit: &str) -> Vec<String> {
    let of_unit = lab.trace().iter().filter(|traced| traced.unit.to_string() == unit);
    of_unit.filter(|traced| traced.ending.is_some()).map(ToString::to_string).collect()
}
