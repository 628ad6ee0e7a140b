//! Outcomes of hooks, in words.

use periapt_host_api::journal::HookOutcome;

use crate::output::Tone;

/// Returns the word for an outcome.
pub(super) fn outcome(outcome: &HookOutcome) -> (&'static str, Tone) {
    match outcome {
        HookOutcome::Handled => ("ok", Tone::Good),
        HookOutcome::Unhandled => ("no handler", Tone::Faint),
        HookOutcome::Skipped => ("skipped", Tone::Busy),
        HookOutcome::Moot => ("moot", Tone::Faint),
        HookOutcome::Failed { .. } => ("failed", Tone::Bad),
    }
}
