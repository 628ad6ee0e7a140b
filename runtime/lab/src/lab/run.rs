//! Letting things happen: to the end, one operation, one step, or for a while.

use std::time::Duration;

use periapt_host_api::{AgentName, Timestamp, UnitName};
use periapt_uniter::executor::Input;

use super::Lab;
use crate::{
    LabError,
    agent::{Driver, Process, Step, World},
    trace::Fate,
};

/// So many rounds without rest are a loop: a unit's whole life takes fewer than a hundred.
const MAX_ROUNDS: usize = 20_000;

/// How rough the world is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weather {
    /// How often, in a thousand, a commit's answer is lost, so that the commit is sent again.
    pub lost_answers: u16,
    /// How often, in a thousand, keepers are too slow to claim leadership before a unit's next step. With 1000 they
    /// claim only once no unit has anything else to do: as late as a claim can be.
    pub late_claims: u16,
}

impl Lab {
    /// Makes the world rougher, or calm again.
    pub fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
    }

    /// Lets everything happen that can without time passing, in whole operations, unit by unit.
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

    /// One operation of each unit, and what controller and keepers have to do. Answers whether there was anything.
    fn round(&mut self) -> Result<bool, LabError> {
        let mut acted = self.upkeep()?;
        for unit in self.looked_after() {
            if !self.held.contains(&unit) {
                acted |= self.operation(&unit)?;
            }
        }
        // When nothing else is to be done, what waits for a commit to go with is sent, and the slowest keeper claims.
        if !acted {
            acted = self.flush(None)?;
        }
        if !acted && self.weather.late_claims > 0 {
            acted = self.claim_leadership()?;
        }
        Ok(acted)
    }

    /// What controller and keepers have to do now, and all frames.
    pub(super) fn upkeep(&mut self) -> Result<bool, LabError> {
        let late = self.weather.late_claims;
        let claims_are_late = late > 0 && self.chance.in_thousand(late);
        let mut acted = !claims_are_late && self.claim_leadership()?;
        for agent in self.agents.values_mut() {
            acted |= agent.keep_storage(&mut self.controller, self.clock)?;
        }
        acted |= self.controller.work(self.clock)?;
        for agent in self.agents.values_mut() {
            acted |= agent.catch_up(&self.controller, self.clock)?;
        }
        Ok(acted)
    }

    /// All keepers claim and renew what is due. Answers whether leadership was won.
    fn claim_leadership(&mut self) -> Result<bool, LabError> {
        let mut won = false;
        for agent in self.agents.values_mut() {
            won |= agent.keep_leases(&mut self.controller, self.clock)?;
        }
        Ok(won)
    }

    /// Sends early effects: those that are due by `at`, or all.
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
                // For its early effects alone the moment passes that they wait for.
                world.agent.pass_short_waits(*world.clock, driver.early_due());
                driver.feed(Input::Woken, world)
            })?;
        }
        for agent in self.agents.values_mut().filter(|agent| agent.is_up()) {
            agent.catch_up(&self.controller, self.clock)?;
        }
        Ok(sent)
    }

    /// Runs one whole operation of a unit: a hook with its commit, or what needs no hook. Answers whether there
    /// was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn step(&mut self, unit: &str) -> Result<bool, LabError> {
        self.upkeep()?;
        self.operation(&unit.parse()?)
    }

    /// Runs the next step of a unit's operation: it is decided, run, and committed in steps of their own, between
    /// which its runner may die ([`Lab::crash_runner`]). Answers whether there was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn micro_step(&mut self, unit: &str) -> Result<bool, LabError> {
        self.upkeep()?;
        Ok(self.micro(&unit.parse()?)? == Step::Acted)
    }

    /// Decides on a unit's next hook, and runs its handler, but does not commit it: the hook is in progress.
    /// [`Lab::step`] brings it to its end. Answers whether there was one.
    ///
    /// # Errors
    /// A defect that came to light, or no such unit.
    pub fn start_hook(&mut self, unit: &str) -> Result<bool, LabError> {
        self.upkeep()?;
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

    /// One step of one unit.
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
            // Its keeper starts another.
            Step::Revoked => self.crash_runner(agent.as_str())?,
            Step::Acted | Step::Rest => {}
        }
        Ok(step)
    }

    /// Does something with one unit's executor, if it is there.
    fn with_driver<T>(
        &mut self,
        agent: &AgentName,
        unit: &UnitName,
        act: impl FnOnce(&mut Driver, &mut World<'_>) -> Result<T, LabError>,
    ) -> Result<Option<T>, LabError> {
        let Self { clock, chance, controller, agents, charms, scripts, trace, weather, defect, .. } = self;
        let Some(agent) = agents.get_mut(agent) else { return Ok(None) };
        let Some(mut driver) = agent.drivers.remove(unit) else { return Ok(None) };
        let mut world = World {
            clock,
            chance,
            controller,
            agent,
            charms,
            scripts,
            trace,
            lost_answers: weather.lost_answers,
            defect: *defect,
        };
        let done = act(&mut driver, &mut world);
        agent.drivers.insert(unit.clone(), driver);
        done.map(Some)
    }

    /// The units that running agents look after, by name.
    pub(super) fn looked_after(&self) -> Vec<UnitName> {
        let running = self.agents.values().filter(|agent| agent.process == Process::Running);
        let mut units: Vec<UnitName> = running.flat_map(|agent| agent.drivers.keys().cloned()).collect();
        units.sort();
        units
    }

    /// Lets time pass, and all that happens meanwhile happen in its turn.
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

    /// Lets time pass without anything else happening but that early effects which waited long enough are sent:
    /// what is in progress takes its time.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn wait(&mut self, duration: Duration) -> Result<(), LabError> {
        self.clock.pass(duration);
        self.flush(Some(self.clock.now())).map(|_| ())
    }

    /// What the clock of leases shows when the clock alone makes something happen; always later than now.
    fn next_wake(&self) -> Option<u64> {
        let mut times: Vec<u64> = Vec::new();
        for agent in self.agents.values().filter(|agent| agent.is_up()) {
            times.extend(agent.renews_at_ms());
            let units = agent.drivers.iter().filter(|(unit, _)| !self.held.contains(*unit));
            times.extend(units.flat_map(|(_, driver)| agent.wakes_at_ms(driver.wake())));
        }
        times.extend(self.controller.wake_at(self.clock).map(|at| self.clock.boot_ms_at(at)));
        times.into_iter().filter(|at| *at > self.clock.boot_ms()).min()
    }

    /// Runs so many steps of units drawn by chance, one step each, so that their operations interleave.
    ///
    /// # Errors
    /// A defect that came to light.
    pub fn stumble(&mut self, steps: usize) -> Result<(), LabError> {
        for _ in 0..steps {
            // Now and then nobody hears the news, and leases and workers wait.
            if !self.chance.in_thousand(300) {
                self.upkeep()?;
            }
            let units: Vec<UnitName> =
                self.looked_after().into_iter().filter(|unit| !self.held.contains(unit)).collect();
            let drawn = self.chance.below(units.len());
            if let Some(unit) = units.get(drawn) {
                self.micro(unit)?;
            }
            if self.chance.in_thousand(200) {
                self.flush(None)?;
            }
        }
        Ok(())
    }

    /// Marks what an agent's runner had not committed as lost.
    pub(super) fn note_lost(&mut self, agent: &AgentName) {
        let Some(agent) = self.agents.get(agent) else { return };
        for traced in agent.drivers.values().filter_map(|driver| driver.lost()) {
            self.trace.decide(traced, Fate::Lost);
        }
    }
}
