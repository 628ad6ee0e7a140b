//! The checks of what the journal shows of a settled model.

use anyhow::ensure;
use periapt_host_api::{api::UnitDetails, event::Event, journal::HookOutcome};
use periapt_tests::HookHistory;

use crate::{
    observed::Observed,
    steps::{FAILURE, LASTING},
};

/// Checks the books of a settled model.
pub(crate) fn audit(history: &HookHistory, observed: &Observed) -> anyhow::Result<()> {
    for (unit, journal) in &history.journals {
        for record in journal.values() {
            // Only a hook that is told to fail may fail, or one that was cut short by three crashes of the sandbox's
            // process.
            if let HookOutcome::Failed { message } = &record.outcome {
                let asked = record.event == Event::ConfigChanged && message.contains(FAILURE);
                ensure!(asked || message.contains("the sandbox crashed"), "{unit}: {record:?}");
            }
        }
    }
    let counting = |unit: &&UnitDetails| LASTING.iter().any(|(name, _)| unit.application.as_str() == *name);
    observed.units.values().filter(counting).try_for_each(|unit| history.audit(unit))
}
