//! The check of a component against the world `periapt:charm/charm`, by structure: its imports must be offered, and
//! its exports must be those that the agent calls.

mod contract;
mod decoded;
mod signature;
mod workload;

use std::collections::BTreeSet;

use periapt_host_api::imports::{Grant, HANDLER_EXPORT, ImportKind};

use self::{contract::Contract, decoded::Decoded};
pub use workload::{WorkloadMismatch, check_workload};

/// The released contract.
pub(crate) const WIT: &str = include_str!("../../../wit/charm.wit");

/// A component that does not match the contract.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorldError {
    /// The bytes are no component.
    #[error("not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// Imports that cannot be linked, each with the reason.
    #[error("imports that cannot be linked: {}", listed(.0, "; "))]
    Imports(Vec<String>),
    /// A function's signature differs from the contract's.
    #[error("{name} does not match the contract: expected {expected}, found {found}")]
    Mismatch {
        /// The interface and the function: `INTERFACE FUNCTION`.
        name: String,
        /// The contract's signature.
        expected: String,
        /// The component's signature.
        found: String,
    },
    /// The component does not export the handler. Holds its exports.
    #[error("the component does not export {HANDLER_EXPORT}; its exports: {}", listed(.0, ", "))]
    NoHandler(Vec<String>),
    /// The built-in contract cannot be read: a defect of this program.
    #[error("the built-in contract is broken: {0}")]
    Contract(String),
}

/// The most names of an untrusted component in an error, and the most characters of each.
const TOLD: (usize, usize) = (20, 200);

/// Lists names of an untrusted component, within those bounds.
fn listed(names: &[String], between: &str) -> String {
    let (most, length) = TOLD;
    let mut told: Vec<String> =
        names.iter().take(most).map(|name| name.chars().take(length).collect()).collect();
    if let Some(more) = names.len().checked_sub(most).filter(|more| *more > 0) {
        told.push(format!("and {more} more"));
    }
    told.join(between)
}

/// Shortens a text that may quote an untrusted component.
fn shortened(text: &str) -> String {
    text.chars().take(TOLD.1).collect()
}

/// The imports of a component that matches the contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentReport {
    /// Interfaces of the contract.
    pub charm: BTreeSet<String>,
    /// WASI interfaces that are always linked, without any access.
    pub base: BTreeSet<String>,
    /// Abilities that an operator must grant.
    pub grants: BTreeSet<Grant>,
}

/// Checks a component.
///
/// # Errors
/// [`WorldError`] names each import or function that does not match.
pub fn check_component(bytes: &[u8]) -> Result<ComponentReport, WorldError> {
    let found = Decoded::read(bytes)?;
    let contract = Contract::get()?;
    let report = check_imports(&found, contract)?;
    match found.exports.get(HANDLER_EXPORT) {
        Some(Some(id)) => contract.check(&found.types, HANDLER_EXPORT, *id)?,
        _ => return Err(WorldError::NoHandler(found.exports.into_keys().collect())),
    }
    Ok(report)
}

fn check_imports(found: &Decoded, contract: &Contract) -> Result<ComponentReport, WorldError> {
    let mut report = ComponentReport::default();
    let mut refused = Vec::new();
    for (name, instance) in &found.imports {
        match (ImportKind::of(name), instance) {
            // A function cannot be linked in place of an interface, under any name.
            (ImportKind::Refused(reason), _) => refused.push(format!("{name}: {reason}")),
            (_, None) => refused.push(format!("{name}: it is not an interface")),
            (ImportKind::Contract, Some(id)) => {
                contract.check(&found.types, name, *id)?;
                report.charm.insert(name.clone());
            }
            (ImportKind::Base, _) => {
                report.base.insert(name.clone());
            }
            (ImportKind::Grantable(grant), _) if grant.is_offered() => {
                report.grants.insert(grant);
            }
            (ImportKind::Grantable(grant), _) => {
                refused.push(format!("{name}: the ability {grant} cannot be granted by this version"));
            }
        }
    }
    match refused.is_empty() {
        true => Ok(report),
        false => Err(WorldError::Imports(refused)),
    }
}
