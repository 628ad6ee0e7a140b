//! What leaves one unit's hooks early: one numbered sequence together with its commits.

use periapt_host_api::{
    Incarnation, Timestamp, UnitName,
    agent::RunnerCommand,
    command::Caller,
    commit::{EarlyEffect, EarlyItem},
};
use periapt_model::Input;

use crate::{
    LabError,
    clock::{Clock, later},
    controller::Controller,
    travel::travelled,
};

/// How long an effect waits for a commit to go with (`design.md` section 3, item 7).
const WAITS_MS: u64 = 50;

/// One unit's early effects that were not sent yet.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    unit: UnitName,
    next: u64,
    unsent: Vec<EarlyItem>,
    /// Since when the first of them waits.
    since: Option<Timestamp>,
}

impl Outbox {
    /// Goes on after the last number that the controller has.
    pub(crate) fn new(unit: UnitName, last_number: u64) -> Self {
        Self { unit, next: last_number.saturating_add(1), unsent: Vec::new(), since: None }
    }

    /// Takes effects, in order.
    pub(crate) fn push(
        &mut self,
        now: Timestamp,
        effects: impl IntoIterator<Item = (Timestamp, EarlyEffect)>,
    ) {
        for (at, effect) in effects {
            self.unsent.push(EarlyItem { number: self.next, at, effect });
            self.next = self.next.saturating_add(1);
            self.since.get_or_insert(now);
        }
    }

    /// What a commit takes along.
    pub(crate) fn take(&mut self) -> Vec<EarlyItem> {
        self.since = None;
        std::mem::take(&mut self.unsent)
    }

    /// Gives back what a refused commit had taken.
    pub(crate) fn put_back(&mut self, now: Timestamp, mut items: Vec<EarlyItem>) {
        items.append(&mut self.unsent);
        self.since = items.first().map(|_| now);
        self.unsent = items;
    }

    /// When it is sent if no commit takes it along; none if nothing waits.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        self.since.map(|since| later(since, WAITS_MS))
    }

    /// Sends what waits. Of a unit that is gone nothing is taken.
    pub(crate) fn flush(
        &mut self,
        controller: &mut Controller,
        clock: Clock,
        caller: &Caller,
        incarnation: Incarnation,
    ) -> Result<(), LabError> {
        let items = self.take();
        let Caller::Runner { model, .. } = caller else { return Ok(()) };
        if !items.is_empty() {
            let command = RunnerCommand::Early { unit: self.unit.clone(), incarnation, items };
            let input = Input::Runner(*model, travelled("early effects", &command)?);
            // A refusal says that the unit is not this runner's any more: nobody is left to hear it.
            let _ = controller.submit(clock, caller, &input);
        }
        Ok(())
    }
}
