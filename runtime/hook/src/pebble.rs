//! The interface `pebble`, which `workloads` has superseded. It leads nowhere: its requests are answered as on a machine
//! where Pebble has not started yet, a case that every charm must handle.

use crate::{CallError, context::HookContext};

/// The most characters of a container's name in an error.
const MAX_SHOWN: usize = 100;

/// The typed interface: `pebble`.
impl HookContext {
    /// Refuses the connection: no container has a running Pebble.
    pub fn pebble_connect(&mut self, container: &str) -> Result<(), CallError> {
        self.call("pebble.connect", (container,), |_| Err(nobody_listens(container)))
    }

    /// Returns the error that answers a request to the Pebble of a container.
    pub fn pebble_exchange(&mut self, container: &str, method: &str, target: &str) -> CallError {
        self.call("pebble.exchange", (container, method, target), |_| nobody_listens(container))
    }
}

/// Returns the error that answers every request to the Pebble of a container.
fn nobody_listens(container: &str) -> CallError {
    let shown: String = container.chars().take(MAX_SHOWN).collect();
    CallError::NotReady(format!("nobody listens for container {shown:?}: no workloads run here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_container_within_bounds() {
        let CallError::NotReady(text) = nobody_listens("web") else { panic!("another kind of error") };
        assert_eq!(text, "nobody listens for container \"web\": no workloads run here");
        assert!(nobody_listens(&"w".repeat(1 << 20)).to_string().len() < 200);
    }
}
