//! The cost of reports of workloads in a model with many units that have some (decision 93).

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, Incarnation, Revision, StoreId, UnitName,
    agent::RunnerCommand,
    command::Command,
    container::{ServiceCurrent, WorkloadsReport},
    size,
};
use periapt_model::{
    Changes, Environment, Input, WorkSchedule, assignment, due_work, evaluate, follow, shown_workloads, view,
};

use crate::{
    cost::counted,
    workloads::{CHARM, report, running},
    world::{World, deploy_command},
};

/// The units of the model when the costs are compared.
const SIZES: [u32; 2] = [100, 10_000];

/// The units that are added before the controller's work is done.
const AT_ONCE: u32 = 2_000;

const AGENTS: [&str; 3] = ["a1", "a2", "a3"];

/// The factor by which a part may take more allocations in the large model, whose paths are two nodes longer.
const GROWTH: f64 = 1.5;

/// The cost of one report.
#[derive(Debug)]
struct Cost {
    /// The entities and records that are written.
    written: (usize, usize),
    /// The bytes of these entities, as JSON.
    bytes: usize,
    /// The entries of frames to all agents.
    told: usize,
    /// The allocations of the command, of the frames to all agents, of what is derived, and of what is shown of the
    /// unit.
    allocations: [u64; 4],
}

/// A model whose units are on some agents. Its invariants are not checked after each step.
struct Many {
    world: World,
    runners: BTreeMap<&'static str, Incarnation>,
}

impl Many {
    fn new() -> Self {
        let mut world = World::new();
        world.checked = false;
        for agent in &AGENTS[1..] {
            world.agent(agent);
        }
        let runners = AGENTS.iter().map(|agent| (*agent, world.attach(agent))).collect();
        let charm = world.upload(CHARM);
        world.run(deploy_command(charm, "web", 0)).unwrap();
        Self { world, runners }
    }

    fn units(&self) -> u32 {
        self.world.state().unit_count().try_into().unwrap()
    }

    /// Adds units up to a number. Each of them has reported its workloads.
    fn grow(&mut self, units: u32) {
        let present = self.units();
        while self.units() < units {
            let count = (units - self.units()).min(AT_ONCE);
            let (application, placement, attach_storage) = ("web".parse().unwrap(), vec![], vec![]);
            self.world.run(Command::AddUnits { application, count, placement, attach_storage }).unwrap();
            self.world.settle();
        }
        let good = report(running(), ServiceCurrent::Active);
        for number in present..units {
            let unit = format!("web/{number}");
            let (agent, command) = self.command(&unit, &good);
            self.world.runner_call(&agent, command).unwrap();
        }
    }

    /// Returns the report of a unit, and the agent that makes it.
    fn command(&self, unit: &str, report: &WorkloadsReport) -> (String, RunnerCommand) {
        let agent = self.world.agent_of(unit);
        let incarnation = self.runners[agent.as_str()];
        let (unit, report) = (unit.parse().unwrap(), Box::new(report.clone()));
        (agent, RunnerCommand::Workloads { unit, incarnation, report })
    }

    /// Makes a report, and returns its cost.
    fn measure(&mut self, unit: &str, report: &WorkloadsReport) -> Cost {
        let (agent, command) = self.command(unit, report);
        let Self { world, .. } = self;
        let env = Environment { now: world.now, lease_now_ms: world.lease_now_ms, seed: [0; 16] };
        let (input, caller) = (Input::Runner(world.model, command), world.runner(&agent));
        let before = world.root.clone();
        let seen = |agent: &&str| {
            let caller = world.runner(agent);
            let seen = view(&before, &caller);
            (caller, seen)
        };
        let views: Vec<_> = AGENTS.iter().map(seen).collect();
        let mut changes = Changes::default();
        let command = counted(|| {
            changes = evaluate(&before, &caller, &input, &env).unwrap().0;
            let revision = Revision(before.revision().0 + u64::from(!changes.stores_nothing()));
            world.root = before.apply(&changes, revision);
        });
        let mut told = 0;
        let frames = counted(|| {
            for (caller, seen) in &views {
                let next = follow(&before, seen, &world.root, caller);
                let frame = seen.frame_to(&next, StoreId(Default::default()));
                told += frame.puts.len() + frame.deletes.len();
            }
        });
        let derived = counted(|| {
            let due = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
            let agents = AGENTS.map(|agent| agent.parse::<AgentName>().unwrap());
            (due, agents.map(|agent| assignment(world.state(), &agent)))
        });
        let name: UnitName = unit.parse().unwrap();
        let shown = counted(|| {
            let unit = world.state().unit(&name).unwrap();
            shown_workloads(&world.root, world.state(), unit, world.lease_now_ms)
        });
        let bytes = changes.puts.iter().map(|(key, entity)| size::of_json(key) + size::of_json(entity)).sum();
        let written = (changes.puts.len(), changes.records.len());
        Cost { written, bytes, told, allocations: [command, frames, derived, shown] }
    }
}

#[test]
fn a_report_of_one_units_workloads_costs_the_same_among_ten_thousand_units() {
    let mut many = Many::new();
    let bad = report(running(), ServiceCurrent::Backoff);
    // Names of the same length, of units that have made one report.
    let mut units = ["web/50", "web/60"].into_iter();
    let [small, large] = SIZES.map(|size| {
        many.grow(size);
        assert_eq!(many.units(), size);
        let unit = units.next().unwrap();
        let cost = many.measure(unit, &bad);
        assert_eq!((cost.written, cost.told), ((1, 0), 0), "one entity, of which no agent hears");
        assert!(many.world.state().workloads_of(&unit.parse().unwrap()).unwrap().report == bad);
        let again = many.measure(unit, &bad);
        assert_eq!((again.written, again.told), ((0, 0), 0), "what is no news is not written");
        cost
    });
    assert_eq!(small.bytes, large.bytes);
    let parts = ["the command", "the frames", "what is derived", "what is shown"];
    for (part, (small, large)) in parts.iter().zip(small.allocations.iter().zip(large.allocations)) {
        let most = ((*small).max(40) as f64 * GROWTH) as u64;
        assert!(large <= most, "{part}: {small} allocations in the small model and {large} in the large");
    }
}
