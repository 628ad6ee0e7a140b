//! The test bench: a local application `a`, a remote application `b` whose units a test may control, and their charms.

use periapt_host_api::{
    RelationId,
    relation::{BagKey, BagOwner, Settings},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_lab::{Action, Lab, LabCharm};

/// The first hooks of a unit without relations.
pub(crate) const START_UP: [&str; 4] = ["install", "leader-elected", "config-changed", "start"];

/// A charm with a requirer endpoint, and an option.
pub(crate) const LOCAL: &str = "
name: local
requires:
  db: {interface: sql}
config:
  options:
    colour: {type: string, default: red}
";

/// The local charm with a peer endpoint.
pub(crate) const PEERED: &str = "
name: peered
requires:
  db: {interface: sql}
peers:
  ring: {interface: ring}
";

/// A charm with the provider endpoint for the local one.
pub(crate) const REMOTE: &str = "
name: remote
provides:
  db: {interface: sql}
";

pub(crate) fn charm(text: &str) -> LabCharm {
    LabCharm::new(&format!("summary: for tests\ndescription: for tests\n{text}")).unwrap()
}

pub(crate) fn lab() -> Lab {
    Lab::new(1).unwrap()
}

/// Returns a model with `units` units of `a` that ran all their first hooks.
pub(crate) fn started(text: &str, units: u32) -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(text), units).unwrap();
    lab.run_until_idle().unwrap();
    lab
}

/// A model with a started `a/0`, related to `b`, whose `remotes` units are in scope, on an agent of their own, and
/// under the test's control.
pub(crate) struct Related {
    pub(crate) lab: Lab,
    pub(crate) relation: RelationId,
    seen: usize,
}

impl Related {
    /// Relates the applications and lets the remote units enter before the local unit's view has the relation.
    pub(crate) fn new(remotes: u32) -> Self {
        let mut bench = Self::unheard(remotes);
        bench.lab.release("a/0").unwrap();
        bench
    }

    /// Builds the same model after `a/0` has run all hooks that follow.
    pub(crate) fn joined(remotes: u32) -> Self {
        let mut bench = Self::new(remotes);
        bench.run();
        bench.forget();
        bench
    }

    /// Builds the model of [`Self::new`] with `a/0` still held.
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
            lab.manual_unit(&format!("b/{number}")).unwrap().enter(relation).unwrap();
        }
        let seen = lab.hooks_of("a/0").len();
        Self { lab, relation, seen }
    }

    /// Runs the model to rest.
    pub(crate) fn run(&mut self) {
        self.lab.run_until_idle().unwrap();
    }

    /// Runs the model to rest, and returns the new hooks of `a/0`.
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

/// Returns a hook that fails.
pub(crate) fn fails() -> Vec<Action> {
    vec![Action::fail("out of luck")]
}

/// Returns a hook that runs one tool.
pub(crate) fn does(line: &str) -> Vec<Action> {
    vec![Action::tool(line)]
}

/// Returns a unit's workload status with its message, as `status` shows them.
pub(crate) fn workload(lab: &Lab, unit: &str) -> (WorkloadStatus, String) {
    let (workload, _) = lab.statuses(unit).unwrap();
    (workload.status, workload.message)
}

/// Returns the hooks of a unit that ran, in any state.
pub(crate) fn runs(lab: &Lab, unit: &str) -> Vec<String> {
    let of_unit = lab.trace().iter().filter(|traced| traced.unit.to_string() == unit);
    of_unit.filter(|traced| traced.ending.is_some()).map(ToString::to_string).collect()
}

/// Returns a hook that runs some tools, with any exit code.
pub(crate) fn tries(lines: &[&str]) -> Vec<Action> {
    lines.iter().map(|line| Action::attempt(line)).collect()
}

/// Returns the last result of a tool with these arguments: exit code, standard output, standard error.
pub(crate) fn tool_result(lab: &Lab, line: &str) -> (u8, String, String) {
    let mut calls = lab.trace().iter().rev().flat_map(|traced| traced.tools.iter().rev());
    let call = calls.find(|call| call.argv.join(" ") == line);
    let output = call.map(|call| call.output.clone()).unwrap_or_else(|| panic!("nobody ran {line}"));
    (output.exit_code, output.stdout, output.stderr)
}

/// Checks that the tool succeeded and printed this.
pub(crate) fn printed(lab: &Lab, line: &str, output: &str) {
    assert_eq!(tool_result(lab, line), (0, output.to_owned(), String::new()), "{line}");
}

/// Checks that the tool failed with this exit code and printed nothing, and that its message contains this.
pub(crate) fn refused(lab: &Lab, line: &str, exit_code: u8, message: &str) {
    let (code, output, error) = tool_result(lab, line);
    assert_eq!((code, output.as_str()), (exit_code, ""), "{line}: {error}");
    assert!(error.starts_with("ERROR ") && error.contains(message), "{line}: {error}");
}

/// Checks that a unit is in hook error, as `status` shows it (ST-1): workload error, agent idle.
pub(crate) fn check_error(lab: &Lab, unit: &str, hook: &str, data: &serde_json::Value) {
    let (workload, agent) = lab.statuses(unit).unwrap();
    assert_eq!((workload.status, agent.status), (WorkloadStatus::Error, AgentStatus::Idle));
    assert_eq!(workload.message, format!("hook failed: \"{hook}\""));
    assert_eq!(serde_json::Value::Object(workload.data), *data);
}

/// Returns a unit's bag; empty if it has none.
pub(crate) fn bag_of(lab: &Lab, relation: RelationId, unit: &str) -> Settings {
    let key = BagKey { relation, owner: BagOwner::Unit(unit.parse().unwrap()) };
    lab.state().unwrap().bag(&key).map(|bag| bag.settings.clone()).unwrap_or_default()
}

/// Returns the ports that a unit has opened, each with its endpoints; no endpoints mean all.
pub(crate) fn ports_of(lab: &Lab, unit: &str) -> Vec<String> {
    let ports = &lab.unit(unit).unwrap().ports;
    ports
        .iter()
        .map(|open| format!("{} {}", open.range, serde_json::to_string(&open.endpoints).unwrap()))
        .collect()
}
