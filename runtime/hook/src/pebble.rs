//! The Pebble of a charm's containers. No workloads run beside charms, so nobody ever listens: what a charm asks is
//! answered as it is on a machine where Pebble has not come up yet, which every charm has to expect.

use crate::CallError;

/// How much of a container's name an error shows.
const MAX_SHOWN: usize = 100;

/// What whoever wants to reach the Pebble of a container is told.
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
