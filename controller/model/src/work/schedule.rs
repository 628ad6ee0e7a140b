//! The order of work among models: a model with much work does not delay the others, and a refused step waits before
//! its next try.

use std::collections::BTreeMap;

use periapt_host_api::{ModelUuid, Refusal};

use crate::input::WorkerCommand;

/// The delay after a step's first refusal, in milliseconds. Each further permanent refusal doubles it.
const FIRST_DELAY_MS: u64 = 1_000;

/// The longest delay after a refusal, in milliseconds.
const LONGEST_DELAY_MS: u64 = 64_000;

/// The workers' memory of submitted steps. It may be lost in a restart.
#[derive(Debug, Clone, Default)]
pub struct WorkSchedule {
    last: Option<ModelUuid>,
    refused: BTreeMap<WorkerCommand, Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    delay_ms: u64,
    until_ms: u64,
}

impl WorkSchedule {
    /// Notes that a step succeeded.
    pub fn done(&mut self, command: &WorkerCommand) {
        self.serve(command);
        self.refused.remove(command);
    }

    /// Notes that a step was refused, at `now_ms` of the monotonic clock.
    pub fn refused(&mut self, command: &WorkerCommand, refusal: &Refusal, now_ms: u64) {
        self.serve(command);
        // Steps that are no longer due are forgotten after a while.
        self.refused.retain(|_, refused| refused.until_ms.saturating_add(2 * LONGEST_DELAY_MS) > now_ms);
        let before = self.refused.get(command).filter(|_| !refusal.code.is_temporary());
        let delay_ms = before.map_or(FIRST_DELAY_MS, |before| (before.delay_ms * 2).min(LONGEST_DELAY_MS));
        let until_ms = now_ms.saturating_add(delay_ms);
        self.refused.insert(command.clone(), Refused { delay_ms, until_ms });
    }

    fn serve(&mut self, command: &WorkerCommand) {
        self.last = command.model().or(self.last);
    }

    /// Returns the model that was served last.
    pub(crate) fn last(&self) -> Option<&ModelUuid> {
        self.last.as_ref()
    }

    /// Returns the milliseconds during which a step must not be tried, or none if it may be tried now.
    pub(crate) fn held_for(&self, command: &WorkerCommand, now_ms: u64) -> Option<u64> {
        let left = self.refused.get(command)?.until_ms.saturating_sub(now_ms);
        (left > 0).then_some(left)
    }
}
