//! Runs of the model: to rest, for one operation, for one step, or for a time.

use std::time::Duration;

use periapt_host_api::{AgentName, Timestamp, UnitName};
use periapt_uniter::executor::ExecutorInput;

use super::Lab;
use crate::{
    LabError,
    agent::{Driver, Process, Step, World},
    pods::PodWorld,
    trace::HookRunState,
};

/// The most rounds of a run. More are an endless loop: a unit's whole life takes fewer than a hundred.
const MAX_ROUNDS: usize = 20_000;

/// The rates of simulated faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// The chance, in a thousand, that a commit's answer is lost, so that the commit is sent again.
    pub lost_answers: u16,
    /// The chance, in a thousand, that keepers are too slow to claim leadership before a unit's next step. With 1000
    /// they claim only once no unit has anything else to do: the latest possible claim.
    pub late_claims: u16,
}

impl Lab {
    /// Sets the rates of simulated faults.
    pub fn set_fault_rates(&mut self, fault_rates: FaultRates) {
        self.fault_rates = fault_rates;
    }

    /// Runs everything that can happen without time passing, in whole operations, unit by unit.
    ///
    /// # Errors
    /// A defect that came to light, or [`LabError::NeverSettles`].
    pub fn run_until_idle(&mut self) -> Result<(), LabError> {
        for _ in 0..MAX_ROUNDS {
            if !self.round()? {
                return Ok(());
            }
        }
        Err(LabError::NeverSettles { rounds: MAX_ROUNDS, last: self.trace.last(20) })
    }

    /// Runs one operation of each unit, and the due work of controller and keepers. Returns true if there was any.
    fn round(&mut self) -> Result<bool, LabError> {
        let mut acted = self.do_due_work()?;
        for unit in self.looked_after() {
            if !self.held.contains(&unit) {
                acted |= self.operation(&unit)?;
            }
        }
        // Without other work, early effects that wait for a commit are sent, and late keepers claim.
        if !acted {
            acted = self.flush(None)?;
        }
        if !acted && self.fault_rates.late_claims > 0 {
            acted = self.claim_leadership()?;
        }
        Ok(acted)
    }

    /// Runs the due work of controller and keepers, and delivers all frames.
    pub(super) fn do_due_work(&mut self) -> Result<bool, LabError> {
        let late = self.fault_rates.late_claims;
        let claims_are_late = late > 0 && self.random.in_thousand(late);
        let mut acted = !claims_are_late && self.claim_leadership()?;
        for agent in self.agents.values_mut() {
            acted |= agent.keep_storage(&mut self.controller, self.clock)?;
        }
        acted |= self.controller.work(self.clock)?;
        for agent in self.agents.values_mut() {
            acted |= agent.catch_up(&self.controller, self.clock)?;
        }
        for agent in self.agents.values_mut() {
            let (clock, scenario, random) = (self.clock, &self.containers, &mut self.random);
            acted |= agent.keep_pods(&mut PodWorld { clock, scenario, random })?;
        }
        Ok(acted)
    }

    /// Lets all keepers claim and renew what is due. Returns true if the model changed.
    fn claim_leadership(&mut self) -> Result<bool, LabError> {
        let mut won = false;
        for agent in self.agents.values_mut() {
            won |= agent.keep_leases(&mut self.controller, self.clock)?;
        }
        Ok(won)
    }

    /// Sends the early effects that are due at `at`, or all.
    pub(super) fn flush(&mut self, at: Option<Timestamp>) -> Result<bool, LabError> {
        let mut sent = false;
        let due: Vec<(AgentName, UnitName)> = self
            .agents
            .values()
            .filter(|agent| agent.is_up())
            .flat_map(|agent| {
                let by = at.map(|_| agent.time(self.clock).steady);
                let due = move |driver: &&Driver| {
                    driver.early_due().is_some_and(|due| by.is_none_or(|by| due <= by))
                };
                let units = agent.drivers.values().filter(due).map(|driver| driver.name().clone());
                units.map(|unit| (agent.name.clone(), unit))
            })
            .collect();
        for (agent, unit) in due {
            sent = true;
            self.with_driver(&agent, &unit, |driver, world| {
                // The wait of the early effects passes for them alone.
                world.agent.pass_short_waits(*world.clock, driver.early_due());
                driver.feed(ExecutorInput::Woken, world)
            })?;
        }
        for agent in self.agents.values_mut().filter(|agent| agent.is_up()) {
            agent.catch_up(&self.controller, self.clock)?;
        }
        Ok(sent)
    }

    /// Runs one whole operation of a unit: a hook with its commit, or an operation without a hook. Returns true if
    /// there was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn step(&mut self, unit: &str) -> Result<bool, LabError> {
        self.do_due_work()?;
        self.operation(&unit.parse()?)
    }

    /// Runs the next step of a unit's operation. Decision, run and commit are steps of their own, between which the
    /// runner may die ([`Lab::crash_runner`]). Returns true if there was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn micro_step(&mut self, unit: &str) -> Result<bool, LabError> {
        self.do_due_work()?;
        Ok(self.micro(&unit.parse()?)? == Step::Acted)
    }

    /// Decides on a unit's next hook and runs its handler without a commit: the hook is in progress. [`Lab::step`]
    /// ends it. Returns true if there was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn start_hook(&mut self, unit: &str) -> Result<bool, LabError> {
        self.do_due_work()?;
        let unit = unit.parse()?;
        let hooks = self.trace().len();
        while self.trace().len() == hooks {
            if self.micro(&unit)? != Step::Acted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn operation(&mut self, unit: &UnitName) -> Result<bool, LabError> {
        let mut acted = false;
        loop {
            if self.micro(unit)? != Step::Acted {
                return Ok(acted);
            }
            acted = true;
            let in_flight = self
                .agents
                .values()
                .filter(|agent| agent.is_up())
                .any(|agent| agent.drivers.get(unit).is_some_and(Driver::is_in_flight));
            if !in_flight {
                return Ok(acted);
            }
        }
    }

    /// Runs one step of one unit.
    pub(super) fn micro(&mut self, unit: &UnitName) -> Result<Step, LabError> {
        let running = self.agents.values().filter(|agent| agent.process == Process::Running);
        let host = running.filter(|agent| agent.drivers.contains_key(unit)).map(|agent| agent.name.clone());
        let Some(agent) = host.into_iter().next() else { return Ok(Step::Stopped) };
        let step = self.with_driver(&agent, unit, Driver::step)?.unwrap_or(Step::Stopped);
        match step {
            Step::Stopped => {
                if let Some(agent) = self.agents.get_mut(&agent) {
                    agent.drivers.remove(unit);
                }
            }
            // The keeper starts another runner.
            Step::Revoked => self.crash_runner(agent.as_str())?,
            Step::Acted | Step::Rest => {}
        }
        Ok(step)
    }

    /// Calls a function with one unit's driver, if there is one.
    fn with_driver<T>(
        &mut self,
        agent: &AgentName,
        unit: &UnitName,
        act: impl FnOnce(&mut Driver, &mut World<'_>) -> Result<T, LabError>,
    ) -> Result<Option<T>, LabError> {
        let Self {
            clock,
            random,
            controller,
            agents,
            charms,
            scripts,
            containers,
            trace,
            fault_rates,
            defect,
            ..
        } = self;
        let Some(agent) = agents.get_mut(agent) else { return Ok(None) };
        let Some(mut driver) = agent.drivers.remove(unit) else { return Ok(None) };
        let mut world = World {
            clock,
            random,
            controller,
            agent,
            charms,
            scripts,
            containers,
            trace,
            lost_answers: fault_rates.lost_answers,
            defect: *defect,
        };
        let done = act(&mut driver, &mut world);
        agent.drivers.insert(unit.clone(), driver);
        done.map(Some)
    }

    /// Returns the units that running agents manage, by name.
    pub(super) fn looked_after(&self) -> Vec<UnitName> {
        let running = self.agents.values().filter(|agent| agent.process == Process::Running);
        let mut units: Vec<UnitName> = running.flat_map(|agent| agent.drivers.keys().cloned()).collect();
        units.sort();
        units
    }

    /// Lets time pass, and runs everything that falls due meanwhile in its turn.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn advance(&mut self, duration: Duration) -> Result<(), LabError> {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let end = self.clock.boot_ms().saturating_add(milliseconds);
        self.run_until_idle()?;
        while let Some(next) = self.next_wake().filter(|next| *next <= end) {
            self.clock.pass_until(next);
            self.run_until_idle()?;
        }
        self.clock.pass_until(end);
        self.run_until_idle()
    }

    /// Lets time pass without any other event, except that early effects which are due are sent. Operations in
    /// progress take their time.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn wait(&mut self, duration: Duration) -> Result<(), LabError> {
        self.clock.pass(duration);
        self.flush(Some(self.clock.now())).map(|_| ())
    }

    /// Returns the next time, on the clock of leases, at which the clock alone causes an event; always later than
    /// now.
    fn next_wake(&self) -> Option<u64> {
        let mut times: Vec<u64> = Vec::new();
        for agent in self.agents.values().filter(|agent| agent.is_up()) {
            times.extend(agent.renews_at_ms());
            let units = agent.drivers.iter().filter(|(unit, _)| !self.held.contains(*unit));
            times.extend(units.flat_map(|(_, driver)| agent.wakes_at_ms(driver.wake())));
        }
        times.extend(self.agents.values().flat_map(|agent| agent.pods.wakes_at_ms()));
        times.extend(self.controller.wake_at(self.clock).map(|at| self.clock.boot_ms_at(at)));
        times.into_iter().filter(|at| *at > self.clock.boot_ms()).min()
    }

    /// Runs some steps of randomly drawn units, one step each, so that their operations interleave.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn run_interleaved(&mut self, steps: usize) -> Result<(), LabError> {
        for _ in 0..steps {
            // At times frames, leases and workers wait.
            if !self.random.in_thousand(300) {
                self.do_due_work()?;
            }
            let units: Vec<UnitName> =
                self.looked_after().into_iter().filter(|unit| !self.held.contains(unit)).collect();
            let drawn = self.random.below(units.len());
            if let Some(unit) = units.get(drawn) {
                self.micro(unit)?;
            }
            if self.random.in_thousand(200) {
                self.flush(None)?;
            }
        }
        Ok(())
    }

    /// Marks the uncommitted run of each unit of an agent's runner as lost.
    pub(super) fn note_lost(&mut self, agent: &AgentName) {
        let Some(agent) = self.agents.get(agent) else { return };
        for traced in agent.drivers.values().filter_map(|driver| driver.lost()) {
            self.trace.decide(traced, HookRunState::Lost);
        }
    }
}
