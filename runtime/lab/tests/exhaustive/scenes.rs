//! Small models, with operators' commands.

use std::{cell::Cell, rc::Rc, sync::Arc, time::Duration};

use periapt_host_api::{
    UnitName,
    command::{Command, Force, RelationSelector, ResolveMode},
    record::{HookStep, Operation},
    status::Life,
    storage::UnitStorage,
};
use periapt_lab::{Lab, LabCharm, LabError};
use periapt_model::entity::Unit;

use super::{
    charms::{PEERED, PROVIDER, REQUIRER, SUBORDINATE, charm},
    moves::Move,
    planted_defects::PlantedDefect,
    symmetry::EqualUnits,
};

/// The agent of all units.
const AGENT: &str = "host";

/// The amount of concurrency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concurrency {
    /// Any number of hooks in progress, and any number of units in error.
    Any,
    /// One hook in progress, while hooks of other units run as a whole; and one unit in error.
    One,
}

/// A model, and its moves.
pub(super) struct Scene {
    name: &'static str,
    lab: Lab,
    /// True if the next handler fails.
    unlucky: Rc<Cell<bool>>,
    commands: Vec<(&'static str, Command)>,
    concurrency: Concurrency,
    without: &'static [&'static str],
    equal_units: Option<EqualUnits>,
    plant: PlantedDefect,
}

impl Scene {
    /// Creates two related applications with these numbers of units, at rest.
    pub(super) fn related(name: &'static str, requirers: u32, providers: u32) -> Self {
        let mut scene = Self::empty(name);
        scene.lab.deploy("a", &scene.charm(REQUIRER), requirers).unwrap();
        scene.lab.deploy("b", &scene.charm(PROVIDER), providers).unwrap();
        scene.lab.integrate("a:db", "b:db").unwrap();
        scene
    }

    /// Creates one unit, before its first hook.
    pub(super) fn alone(name: &'static str) -> Self {
        let mut scene = Self::empty(name);
        scene.lab.deploy("a", &scene.charm(REQUIRER), 1).unwrap();
        scene
    }

    /// Creates one application with a peer relation and this number of units, before their first hooks.
    pub(super) fn crew(name: &'static str, units: u32) -> Self {
        let mut scene = Self::empty(name);
        scene.lab.deploy("a", &scene.charm(PEERED), units).unwrap();
        scene
    }

    /// Creates a principal application with this number of units, each with its subordinate, at rest.
    pub(super) fn accompanied(name: &'static str, principals: u32) -> Self {
        let mut scene = Self::empty(name);
        scene.lab.deploy("a", &scene.charm(REQUIRER), principals).unwrap();
        scene.lab.deploy("s", &scene.charm(SUBORDINATE), 0).unwrap();
        scene.lab.integrate("s", "a").unwrap();
        scene
    }

    fn empty(name: &'static str) -> Self {
        let mut lab = Lab::new(1).unwrap();
        // The timer of update-status, which fires for ever, is left out.
        lab.configure_model(&[("update-status-hook-interval", "0")]).unwrap();
        Self {
            name,
            lab,
            unlucky: Rc::default(),
            commands: Vec::new(),
            concurrency: Concurrency::Any,
            without: &[],
            equal_units: None,
            plant: PlantedDefect::Sound,
        }
    }

    /// Returns a charm whose every handler ends as the move says.
    fn charm(&self, text: &str) -> LabCharm {
        let unlucky = Rc::clone(&self.unlucky);
        charm(text).with_handler(move |_| match unlucky.get() {
            true => Err("out of luck".to_owned()),
            false => Ok(()),
        })
    }

    /// Runs the model to rest before the search begins.
    pub(super) fn at_rest(mut self) -> Self {
        self.lab.run_until_idle().unwrap();
        self
    }

    /// Adds a command of operators, with a name for messages.
    pub(super) fn with(mut self, name: &'static str, command: Command) -> Self {
        self.commands.push((name, command));
        self
    }

    /// Sets the amount of concurrency.
    pub(super) fn concurrency(mut self, concurrency: Concurrency) -> Self {
        self.concurrency = concurrency;
        self
    }

    /// Leaves moves of these kinds to longer searches.
    pub(super) fn without(mut self, kinds: &'static [&'static str]) -> Self {
        self.without = kinds;
        self
    }

    /// Declares the first two units of `a`, on the first two machines, to be equal. Each command must exist for
    /// both.
    pub(super) fn with_twins(mut self) -> Self {
        self.equal_units = Some(EqualUnits { units: ["a/0", "a/1"], machines: [0, 1] });
        self
    }

    pub(super) fn equal_units(&self) -> Option<EqualUnits> {
        self.equal_units
    }

    /// Adds a defect.
    pub(super) fn planted(mut self, plant: PlantedDefect) -> Self {
        self.plant = plant;
        self
    }

    pub(super) fn plant(&self) -> PlantedDefect {
        self.plant
    }

    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn beginning(&self) -> Lab {
        self.lab.clone()
    }

    /// Returns every possible move.
    pub(super) fn moves(&self, lab: &Lab) -> Vec<Move> {
        let mut moves = vec![Move::Tend, Move::Pass, Move::Restart];
        moves.push(if lab.is_running(AGENT) { Move::Kill } else { Move::Revive });
        let failed: Vec<UnitName> = in_error(lab);
        let looked_after = lab.units_looked_after();
        let (flying, resting): (Vec<_>, Vec<_>) =
            looked_after.into_iter().partition(|unit| lab.is_in_flight(unit));
        if !flying.is_empty() {
            moves.push(Move::Crash);
        }
        for unit in resting {
            if self.concurrency == Concurrency::One && !flying.is_empty() {
                moves.push(Move::Step(unit));
                continue;
            }
            if self.concurrency == Concurrency::Any || failed.iter().all(|other| *other == unit) {
                moves.push(Move::Fail(unit.clone()));
            }
            moves.push(Move::Begin(unit));
        }
        moves.extend(flying.into_iter().map(Move::Finish));
        for unit in failed {
            // With less concurrency the passing of time retries a failed hook.
            if self.concurrency == Concurrency::Any {
                moves.push(Move::Resolve(unit.clone(), ResolveMode::Retry));
            }
            moves.push(Move::Resolve(unit, ResolveMode::NoRetry));
        }
        if self.equal_units.is_some() {
            moves.extend(candidates(lab).into_iter().map(Move::Claim));
        }
        moves.extend(self.commands.iter().map(|(name, command)| Move::Ask(name, Box::new(command.clone()))));
        moves.retain(|step| !self.without.contains(&step.kind()) && !self.plant.withholds(step, lab));
        moves
    }

    /// Makes a move. A refused one changes nothing.
    pub(super) fn perform(&self, lab: &mut Lab, step: &Move) -> Result<(), LabError> {
        let done = match step {
            Move::Begin(unit) => lab.begin(unit).map(|_| ()),
            Move::Fail(unit) => {
                self.unlucky.set(true);
                let begun = lab.begin(unit);
                self.unlucky.set(false);
                begun.and_then(|_| lab.finish(unit))
            }
            Move::Finish(unit) => lab.finish(unit),
            Move::Step(unit) => lab.begin(unit).and_then(|_| lab.finish(unit)),
            Move::Claim(unit) => lab.claim(unit),
            Move::Tend => lab.tend(),
            Move::Pass => {
                lab.pass(Duration::from_secs(400));
                lab.tend()
            }
            Move::Crash => lab.crash_runner(AGENT),
            Move::Kill => lab.kill_agent(AGENT),
            Move::Revive => lab.start_agent(AGENT),
            Move::Restart => lab.restart_controller(),
            Move::Resolve(unit, mode) => lab.resolve(&unit.to_string(), *mode),
            Move::Ask(_, command) => lab.command(command).map(|_| ()),
        };
        let done = match done {
            Err(LabError::Refused(_)) => Ok(()),
            other => other,
        };
        done.and_then(|()| lab.deliver())
    }
}

fn in_error(lab: &Lab) -> Vec<UnitName> {
    let failed = |unit: &&Arc<Unit>| {
        matches!(unit.record.operation, Operation::Hook { step: HookStep::Failed(_), .. })
    };
    lab.state().unwrap().units().filter(failed).map(|unit| unit.name.clone()).collect()
}

/// Returns the units that can become leader of an application without one (U-41).
fn candidates(lab: &Lab) -> Vec<UnitName> {
    let state = lab.state().unwrap();
    let leaderless = |unit: &UnitName| {
        state.application(unit.application()).is_some_and(|application| application.leader.is_none())
    };
    let mut units = lab.units_looked_after();
    units.retain(|name| leaderless(name) && state.unit(name).is_some_and(|unit| unit.life == Life::Alive));
    units
}

/// Returns the command that removes an application.
pub(super) fn application(name: &str, force: Option<Force>) -> Command {
    Command::RemoveApplication { application: name.parse().unwrap(), force, storage: UnitStorage::Detach }
}

/// Returns the command that removes a unit.
pub(super) fn unit(name: &str, force: Option<Force>) -> Command {
    Command::RemoveUnit { unit: name.parse().unwrap(), force, storage: UnitStorage::Detach }
}

/// Returns the command that removes the first relation.
pub(super) fn relation(force: Option<Force>) -> Command {
    Command::RemoveRelation { relation: RelationSelector::Id(periapt_host_api::RelationId(0)), force }
}
