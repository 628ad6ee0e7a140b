//! The early effects of a running hook.

use std::sync::Arc;

use periapt_host_api::{Timestamp, commit::EarlyEffect};
use periapt_uniter::executor::ExecutorInput;

use super::{Unit, Units};

/// The early effects of a running hook.
#[derive(Clone)]
pub(crate) struct EarlySender {
    pub(super) units: Arc<Units>,
    pub(super) unit: Arc<Unit>,
}

impl EarlySender {
    /// Passes effects on, in order.
    pub(crate) fn push(&self, effects: Vec<(Timestamp, EarlyEffect)>) {
        if !effects.is_empty() {
            self.units.feed(&self.unit, ExecutorInput::Said(effects));
        }
    }
}
