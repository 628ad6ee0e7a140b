//! The back-off of failed hooks and deployments (`docs/hook-model.md` 1.9).

use periapt_host_api::{Timestamp, record::HookFailure, settings::ModelConfig};

use crate::jitter::{Jitter, later};

/// The wait after the first failure, in milliseconds.
const FIRST_WAIT_MS: u64 = 5_000;
/// The longest wait, in milliseconds.
const LONGEST_WAIT_MS: u64 = 300_000;
/// The largest change of a wait by jitter, in per cent.
const JITTER_PER_CENT: u64 = 10;
/// The most bytes of a failure's message in the record. The charm chooses the text, and the record is part of each
/// commit. The log has the whole text.
const MAX_MESSAGE_LENGTH: usize = 4096;

/// Returns the failure after `attempts` consecutive earlier ones.
pub(crate) fn failure(message: &str, attempts: u32, now: Timestamp, jitter: Jitter) -> HookFailure {
    let doubled = FIRST_WAIT_MS.saturating_mul(2_u64.saturating_pow(attempts)).min(LONGEST_WAIT_MS);
    HookFailure {
        message: truncated(message),
        attempts: attempts.saturating_add(1),
        failed_at: now,
        retry_after_ms: jitter.spread(doubled, JITTER_PER_CENT).min(LONGEST_WAIT_MS),
        cut_short: false,
    }
}

/// Returns the time of the next automatic attempt; none if the model's retries are off.
///
/// A failure in the future comes from an earlier agent, before the clock was set back. Its age is unknown, so the
/// next attempt is due at once.
pub(crate) fn due(failure: &HookFailure, config: &ModelConfig, now: Timestamp) -> Option<Timestamp> {
    let at = match failure.failed_at > now {
        true => now,
        false => later(failure.failed_at, failure.retry_after_ms),
    };
    config.automatically_retry_hooks.then_some(at)
}

/// Returns a message, truncated if it is too long for the record.
pub(crate) fn truncated(message: &str) -> String {
    if message.len() <= MAX_MESSAGE_LENGTH {
        return message.to_owned();
    }
    const ELLIPSIS: &str = "...";
    let room = MAX_MESSAGE_LENGTH - ELLIPSIS.len();
    let end = (0..=room).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    message.get(..end).unwrap_or_default().to_owned() + ELLIPSIS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_waits_double_from_five_seconds_to_five_minutes() {
        let waits: Vec<u64> = (0..9)
            .map(|attempts| failure("", attempts, Timestamp::UNIX_EPOCH, Jitter::NONE).retry_after_ms)
            .collect();
        assert_eq!(waits, [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000]);
    }

    #[test]
    fn c09_jitter_never_makes_a_wait_longer_than_five_minutes() {
        for attempts in [6, 7, 100, u32::MAX] {
            let wait = failure("", attempts, Timestamp::UNIX_EPOCH, Jitter::MOST).retry_after_ms;
            assert_eq!(wait, 300_000);
        }
        assert_eq!(failure("", 0, Timestamp::UNIX_EPOCH, Jitter::LEAST).retry_after_ms, 4_500);
    }

    #[test]
    fn a_long_message_is_truncated_between_characters() {
        let kept = failure(&"ä".repeat(5000), 0, Timestamp::UNIX_EPOCH, Jitter::NONE).message;
        assert!(kept.len() <= MAX_MESSAGE_LENGTH && kept.ends_with("ä..."));
    }
}
