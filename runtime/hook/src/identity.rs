//! The unit's addresses.

use crate::{CallError, run::HookRun};

impl HookRun {
    /// Returns the address for other units of the same network.
    pub(crate) fn private_address(&self) -> Result<&str, CallError> {
        self.address("private")
    }

    /// Returns the address for clients outside the network. Machines have one kind of address, so it is the
    /// same.
    pub(crate) fn public_address(&self) -> Result<&str, CallError> {
        self.address("public")
    }

    fn address(&self, kind: &str) -> Result<&str, CallError> {
        self.snapshot
            .machine()
            .preferred_address()
            .ok_or_else(|| CallError::NotReady(format!("no {kind} address(es) found")))
    }
}
