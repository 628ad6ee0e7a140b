//! The unit's identity: its principal, its model and machine, and its addresses.

use periapt_host_api::UnitName;

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// The typed interface: `identity`.
impl HookContext {
    /// Returns a subordinate's principal.
    pub fn principal_unit(&mut self) -> Option<UnitName> {
        self.call("identity.principal-unit", (), |run| run.snapshot.own().principal.clone())
    }

    /// Returns the model's name.
    pub fn model_name(&mut self) -> String {
        self.call("identity.model-name", (), |run| run.snapshot.model().name.to_string())
    }

    /// Returns the model's UUID.
    pub fn model_uuid(&mut self) -> String {
        self.call("identity.model-uuid", (), |run| run.snapshot.model().uuid.to_string())
    }

    /// Returns the machine's number.
    pub fn machine_id(&mut self) -> String {
        self.call("identity.machine-id", (), |run| run.snapshot.machine().id.to_string())
    }

    /// Returns the machine's zone; may be empty.
    pub fn availability_zone(&mut self) -> String {
        self.call("identity.availability-zone", (), |run| run.snapshot.machine().availability_zone.clone())
    }

    /// Returns Periapt's version.
    pub fn version(&mut self) -> String {
        self.call("identity.version", (), |_| env!("CARGO_PKG_VERSION").to_owned())
    }

    /// Returns the unit's address in its network.
    pub fn private_address(&mut self) -> Result<String, CallError> {
        self.call("identity.private-address", (), |run| Ok(run.private_address()?.to_owned()))
    }

    /// Returns the unit's public address.
    pub fn public_address(&mut self) -> Result<String, CallError> {
        self.call("identity.public-address", (), |run| Ok(run.public_address()?.to_owned()))
    }
}

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
