//! Outcomes of hooks, in words.

use periapt_host_api::journal::HookOutcome;

use crate::output::TextStyle;

/// Returns the word for an outcome.
pub(super) fn outcome(outcome: &HookOutcome) -> (&'static str, TextStyle) {
    match outcome {
        HookOutcome::Handled => ("ok", TextStyle::Good),
        HookOutcome::Unhandled => ("no handler", TextStyle::Faint),
        HookOutcome::Skipped => ("skipped", TextStyle::Busy),
        HookOutcome::Moot => ("moot", TextStyle::Faint),
        HookOutcome::Failed { .. } => ("failed", TextStyle::Bad),
    }
}
