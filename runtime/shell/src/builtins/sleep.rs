//! `sleep`

use std::time::Duration;

use super::call::Call;
use crate::{Request, interpreter::Step};

/// The longest sleep: longer than any time budget, and within the range of every clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Runs `sleep NUMBER[smhd]...`.
pub(super) fn sleep(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        const SEE: &str = "Try 'sleep --help' for more information.";
        if call.arguments.is_empty() {
            return call.fail(1, &format!("missing operand\n{SEE}"));
        }
        let mut total = Duration::ZERO;
        for argument in call.arguments {
            let Some(duration) = duration(argument) else {
                return call.fail(1, &format!("invalid time interval ‘{argument}’\n{SEE}"));
            };
            total = total.saturating_add(duration).min(LONGEST);
        }
        call.shell.ask(Request::Sleep(total)).await;
        Ok(0)
    })
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = match text.char_indices().next_back()? {
        (at, 's') => (text.get(..at)?, 1.0),
        (at, 'm') => (text.get(..at)?, 60.0),
        (at, 'h') => (text.get(..at)?, 3_600.0),
        (at, 'd') => (text.get(..at)?, 86_400.0),
        _ => (text, 1.0),
    };
    let seconds = number.parse::<f64>().ok().filter(|seconds| *seconds >= 0.0)? * unit;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("1", Some(Duration::from_secs(1))),
            ("0.5", Some(Duration::from_millis(500))),
            ("2m", Some(Duration::from_secs(120))),
            ("infinity", Some(LONGEST)),
            ("1e300d", Some(LONGEST)),
            ("x", None),
            ("-1", None),
            ("NaN", None),
            ("", None),
            ("s", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }
}
