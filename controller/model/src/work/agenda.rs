//! Whose turn it is: what one model has to be done, however much it is, keeps no other model waiting, and what was
//! refused waits before it is tried again.

use std::collections::BTreeMap;

use periapt_host_api::{ModelUuid, Refusal};

use crate::input::WorkerCommand;

/// How long a step waits after its first refusal; each further one by the model doubles it.
const FIRST_DELAY_MS: u64 = 1_000;

/// The longest that a step waits after a refusal.
const LONGEST_DELAY_MS: u64 = 64_000;

/// What the workers remember of the steps that they submitted: nothing that matters after a restart.
#[derive(Debug, Clone, Default)]
pub struct Agenda {
    last: Option<ModelUuid>,
    refused: BTreeMap<WorkerCommand, Refused>,
}

#[derive(Debug, Clone, Copy)]
struct Refused {
    delay_ms: u64,
    until_ms: u64,
}

impl Agenda {
    /// A step was done.
    pub fn done(&mut self, command: &WorkerCommand) {
        self.serve(command);
        self.refused.remove(command);
    }

    /// A step was refused, by the monotonic clock at `now_ms`.
    pub fn refused(&mut self, command: &WorkerCommand, refusal: &Refusal, now_ms: u64) {
        self.serve(command);
        // Steps that nobody names any more are forgotten after a while.
        self.refused.retain(|_, refused| refused.until_ms.saturating_add(2 * LONGEST_DELAY_MS) > now_ms);
        let before = self.refused.get(command).filter(|_| !refusal.code.is_temporary());
        let delay_ms = before.map_or(FIRST_DELAY_MS, |before| (before.delay_ms * 2).min(LONGEST_DELAY_MS));
        let until_ms = now_ms.saturating_add(delay_ms);
        self.refused.insert(command.clone(), Refused { delay_ms, until_ms });
    }

    fn serve(&mut self, command: &WorkerCommand) {
        self.last = command.model().or(self.last);
    }

    /// The model that was served last.
    pub(crate) fn last(&self) -> Option<&ModelUuid> {
        self.last.as_ref()
    }

    /// For how many milliseconds a step is not to be tried; none: it may be.
    pub(crate) fn held_for(&self, command: &WorkerCommand, now_ms: u64) -> Option<u64> {
        let left = self.refused.get(command)?.until_ms.saturating_sub(now_ms);
        (left > 0).then_some(left)
    }
}
