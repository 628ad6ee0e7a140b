//! The Pebble of a charm's containers. No workloads run beside charms, so no Pebble ever listens: requests are
//! answered as on a machine where Pebble has not started yet, a case that every charm must handle.

use crate::CallError;

/// The most characters of a container's name in an error.
const MAX_SHOWN: usize = 100;

/// Returns the error that answers every request to the Pebble of a container.
pub(crate) fn nobody_listens(container: &str) -> CallError {
    let shown: String = container.chars().take(MAX_SHOWN).collect();
    CallError::NotReady(format!("nobody listens for container {shown:?}: no workloads run here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_is_told_whom_they_asked_for_within_bounds() {
        let CallError::NotReady(text) = nobody_listens("web") else { panic!("another kind of error") };
        assert_eq!(text, "nobody listens for container \"web\": no workloads run here");
        assert!(nobody_listens(&"w".repeat(1 << 20)).to_string().len() < 200);
    }
}
