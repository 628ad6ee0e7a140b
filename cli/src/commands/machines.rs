//! Machines, as Juju's clients see them.

mod list;
mod listing;
mod remove;
mod retry_provisioning;
mod show;

use super::{Verb, verbs};

verbs! {
    /// Machines, as Juju's clients see them.
    Machines {
        list::Machines,
        show::ShowMachine,
        remove::RemoveMachine,
        retry_provisioning::RetryProvisioning,
    }
}
