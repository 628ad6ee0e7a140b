//! Who and where the unit is.

use crate::{CallError, run::HookRun};

impl HookRun {
    /// The address that others of the same network reach the unit by.
    pub(crate) fn private_address(&self) -> Result<&str, CallError> {
        self.address("private")
    }

    /// The address that the world reaches the unit by; machines have one kind of addresses, so it is the same.
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
