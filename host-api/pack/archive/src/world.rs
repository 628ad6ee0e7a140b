//! Checking a component against the world `periapt:charm/charm`, by structure: what it imports must be offered,
//! what it exports must be what the agent calls.

mod contract;
mod decoded;
mod signature;

use std::collections::BTreeSet;

use periapt_host_api::imports::{Grant, HANDLER_EXPORT, ImportKind};

use self::{contract::Contract, decoded::Decoded};

/// The contract, as it was released.
pub(crate) const WIT: &str = include_str!("../../../wit/charm.wit");

/// Why a component does not fit.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WorldError {
    /// Not a component.
    #[error("not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// Imports that are not linked here, each with the reason.
    #[error("imports that cannot be linked: {}", listed(.0, "; "))]
    Imports(Vec<String>),
    /// A function that is not the contract's.
    #[error("{name} is not what the contract says: expected {expected}, found {found}")]
    Mismatch {
        /// `INTERFACE FUNCTION`.
        name: String,
        /// The contract's signature.
        expected: String,
        /// The component's.
        found: String,
    },
    /// The handler is not exported.
    #[error("the component does not export {HANDLER_EXPORT}; its exports: {}", listed(.0, ", "))]
    NoHandler(Vec<String>),
    /// The contract itself cannot be read: a defect of this program.
    #[error("the built-in contract is broken: {0}")]
    Contract(String),
}

/// The most names of a stranger's component that an error tells, and the most characters of each.
const TOLD: (usize, usize) = (20, 200);

/// Names of a stranger's component, as many as anybody reads.
fn listed(names: &[String], between: &str) -> String {
    let (most, length) = TOLD;
    let mut told: Vec<String> =
        names.iter().take(most).map(|name| name.chars().take(length).collect()).collect();
    if let Some(more) = names.len().checked_sub(most).filter(|more| *more > 0) {
        told.push(format!("and {more} more"));
    }
    told.join(between)
}

/// A text that may quote a stranger's component, as much of it as anybody reads.
fn told(text: &str) -> String {
    text.chars().take(TOLD.1).collect()
}

/// What a component that fits imports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentReport {
    /// Interfaces of the contract.
    pub charm: BTreeSet<String>,
    /// WASI interfaces that are always there, and empty.
    pub base: BTreeSet<String>,
    /// Abilities that an operator must grant.
    pub grants: BTreeSet<Grant>,
}

/// Checks a component.
///
/// # Errors
/// [`WorldError`] names each import or function that does not fit.
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
            // A function that has an interface's name is linked by nobody, whatever the name.
            (ImportKind::Refused(reason), _) => refused.push(format!("{name}: {reason}")),
            (_, None) => refused.push(format!("{name}: it is no interface")),
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
