//! How hooks ended, in words.

use periapt_host_api::journal::HookOutcome;

use crate::output::Tone;

/// How a hook ended, in a word.
pub(super) fn outcome(outcome: &HookOutcome) -> (&'static str, Tone) {
    match outcome {
        HookOutcome::Handled => ("ok", Tone::Good),
        HookOutcome::Unhandled => ("no handler", Tone::Faint),
        HookOutcome::Skipped => ("skipped", Tone::Busy),
        HookOutcome::Moot => ("moot", Tone::Faint),
        HookOutcome::Failed { .. } => ("failed", Tone::Bad),
    }
}
