//! The options for waiting until a task or operation has ended.

use std::time::Duration;

use clap::Args;

use crate::parse::duration;

/// A wait without end.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The choice whether to wait, and how long.
#[derive(Debug, Clone, Args)]
pub(super) struct WaitArgs {
    /// The longest wait for its end; 0 has no limit
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "watch")]
    wait: Option<Duration>,
    /// Wait without a limit, and show messages as they come
    #[arg(long)]
    watch: bool,
}

impl WaitArgs {
    /// Returns the longest wait. None: the command does not wait.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        match (self.wait, self.watch) {
            (None, false) => None,
            (Some(wait), _) if !wait.is_zero() => Some(wait),
            _ => Some(FOR_EVER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_no_wait_and_zero_is_for_ever() {
        let second = Duration::from_secs(1);
        for (wait, watch, longest) in [
            (None, false, None),
            (Some(second), false, Some(second)),
            (Some(Duration::ZERO), false, Some(FOR_EVER)),
            (None, true, Some(FOR_EVER)),
        ] {
            assert_eq!(WaitArgs { wait, watch }.longest_wait(), longest);
        }
    }
}
