//! Checking a component against the world `periapt:charm/charm`, by structure: what it imports must be offered,
//! what it exports must be what the agent calls.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::imports::{Grant, HANDLER_EXPORT, ImportKind};
use wasmparser::{Parser, Payload, WasmFeatures};
use wit_parser::{
    Function, Handle, InterfaceId, Resolve, Type, TypeDefKind, World, WorldId, WorldItem, WorldKey,
    decoding::{DecodedWasm, decode},
};

/// The contract, as it was released.
pub(crate) const WIT: &str = include_str!("../../wit/charm.wit");

/// Why a component does not fit.
#[derive(Debug, thiserror::Error)]
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
    refuse_compact_imports(bytes)?;
    let (found, world) = match decode(bytes) {
        Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
        Ok(DecodedWasm::WitPackage(..)) => {
            return Err(WorldError::NotAComponent("it is a WIT package".into()));
        }
        Err(error) => return Err(WorldError::NotAComponent(format!("{error:#}"))),
    };
    let contract = Contract::read()?;
    let world = found.worlds.get(world).ok_or_else(|| WorldError::NotAComponent("it has no world".into()))?;
    let report = check_imports(&found, world, &contract)?;
    let exports = interfaces(&found, &world.exports);
    match exports.get(HANDLER_EXPORT) {
        Some(Some(id)) => contract.check(&found, HANDLER_EXPORT, *id)?,
        _ => return Err(WorldError::NoHandler(exports.into_keys().collect())),
    }
    Ok(report)
}

/// Refuses modules whose imports name their module once for many of them, which the engine does not take. The decoder
/// does, and writes the name out for each: a hundred kilobytes, a million times.
fn refuse_compact_imports(bytes: &[u8]) -> Result<(), WorldError> {
    let unreadable = |error: wasmparser::BinaryReaderError| WorldError::NotAComponent(error.to_string());
    let mut parser = Parser::new(0);
    parser.set_features(WasmFeatures::all().difference(WasmFeatures::COMPACT_IMPORTS));
    for payload in parser.parse_all(bytes) {
        if let Payload::ImportSection(imports) = payload.map_err(unreadable)? {
            imports.into_iter().try_for_each(|import| import.map(drop)).map_err(unreadable)?;
        }
    }
    Ok(())
}

fn check_imports(found: &Resolve, world: &World, contract: &Contract) -> Result<ComponentReport, WorldError> {
    let mut report = ComponentReport::default();
    let mut refused = Vec::new();
    for (name, id) in interfaces(found, &world.imports) {
        match ImportKind::of(&name) {
            ImportKind::Contract => {
                if let Some(id) = id {
                    contract.check(found, &name, id)?;
                }
                report.charm.insert(name);
            }
            ImportKind::Base => {
                report.base.insert(name);
            }
            ImportKind::Grantable(grant) if grant.is_offered() => {
                report.grants.insert(grant);
            }
            ImportKind::Grantable(grant) => {
                refused.push(format!("{name}: the ability {grant} cannot be granted by this version"));
            }
            ImportKind::Refused(reason) => refused.push(format!("{name}: {reason}")),
        }
    }
    match refused.is_empty() {
        true => Ok(report),
        false => Err(WorldError::Imports(refused)),
    }
}

/// The contract's interfaces: each function's signature, with all types written out.
struct Contract {
    interfaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl Contract {
    fn read() -> Result<Self, WorldError> {
        let broken = |error: String| WorldError::Contract(error);
        let mut resolve = Resolve::default();
        let package = resolve.push_str("charm.wit", WIT).map_err(|error| broken(format!("{error:#}")))?;
        let world: WorldId =
            resolve.select_world(&[package], Some("charm")).map_err(|error| broken(format!("{error:#}")))?;
        let world = resolve.worlds.get(world).ok_or_else(|| broken("no world".into()))?;
        let both =
            interfaces(&resolve, &world.imports).into_iter().chain(interfaces(&resolve, &world.exports));
        let interfaces = both.filter_map(|(name, id)| Some((name, signatures(&resolve, id?)))).collect();
        Ok(Self { interfaces })
    }

    /// Each function that the component names must be the contract's; it may leave functions out.
    fn check(&self, found: &Resolve, name: &str, id: InterfaceId) -> Result<(), WorldError> {
        let Some(expected) = self.interfaces.get(name) else {
            return Err(WorldError::Contract(format!("{name} is offered and not described")));
        };
        let Some(interface) = found.interfaces.get(id) else { return Ok(()) };
        // One by one, and no further than the first that differs: a stranger's may be very many.
        for (function, definition) in &interface.functions {
            let wanted = expected.get(function).map_or("nothing of that name", String::as_str);
            let signature = Signature::of(found, definition);
            if wanted != signature {
                return Err(WorldError::Mismatch {
                    name: format!("{name} {function}"),
                    expected: wanted.to_owned(),
                    found: signature,
                });
            }
        }
        if name == HANDLER_EXPORT && interface.functions.is_empty() {
            return Err(WorldError::NoHandler(vec![format!("{name}, without its function `handle`")]));
        }
        Ok(())
    }
}

/// The items of a world by name; interfaces with their id.
fn interfaces<'a>(
    resolve: &Resolve,
    items: impl IntoIterator<Item = (&'a WorldKey, &'a WorldItem)>,
) -> BTreeMap<String, Option<InterfaceId>> {
    items
        .into_iter()
        .map(|(key, item)| {
            let id = match item {
                WorldItem::Interface { id, .. } => Some(*id),
                WorldItem::Function(_) | WorldItem::Type { .. } => None,
            };
            (resolve.name_world_key(key), id)
        })
        .collect()
}

fn signatures(resolve: &Resolve, id: InterfaceId) -> BTreeMap<String, String> {
    let Some(interface) = resolve.interfaces.get(id) else { return BTreeMap::new() };
    let of = |(name, function): (&String, &Function)| (name.clone(), Signature::of(resolve, function));
    interface.functions.iter().map(of).collect()
}

/// The most bytes of a signature: twice the longest of the contract's. What is longer is none of the contract's, and a
/// stranger's, with all types written out, could be longer than any memory.
const LONGEST_SIGNATURE: usize = 8 << 10;

/// A function's signature, being written: each type with all that it is made of. Types are compared by structure, so
/// names of types do not count, names of fields and cases do.
struct Signature<'a> {
    resolve: &'a Resolve,
    text: String,
}

impl<'a> Signature<'a> {
    fn of(resolve: &'a Resolve, function: &Function) -> String {
        let mut signature = Self { resolve, text: String::new() };
        signature.list("func(", &function.params, ")", |this, param| this.field(&param.name, &param.ty));
        if let Some(ty) = &function.result {
            signature.push(" -> ");
            signature.ty(ty);
        }
        if signature.is_full() {
            signature.text.push_str("...");
        }
        signature.text
    }

    fn is_full(&self) -> bool {
        self.text.len() >= LONGEST_SIGNATURE
    }

    /// As much of it as there is room for.
    fn push(&mut self, text: &str) {
        let room = LONGEST_SIGNATURE.saturating_sub(self.text.len());
        self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    }

    fn list<T>(&mut self, open: &str, items: &[T], close: &str, mut write: impl FnMut(&mut Self, &T)) {
        self.push(open);
        for (number, item) in items.iter().enumerate() {
            if self.is_full() {
                return;
            }
            if number > 0 {
                self.push(", ");
            }
            write(self, item);
        }
        self.push(close);
    }

    fn field(&mut self, name: &str, ty: &Type) {
        self.push(name);
        self.push(": ");
        self.ty(ty);
    }

    fn optional(&mut self, ty: Option<&Type>) {
        match ty {
            Some(ty) => self.ty(ty),
            None => self.push("_"),
        }
    }

    fn ty(&mut self, ty: &Type) {
        if self.is_full() {
            return;
        }
        let Type::Id(id) = ty else { return self.push(&format!("{ty:?}").to_lowercase()) };
        let Some(definition) = self.resolve.types.get(*id) else { return self.push("unknown") };
        match &definition.kind {
            TypeDefKind::Type(ty) => self.ty(ty),
            TypeDefKind::Record(record) => {
                self.list("record { ", &record.fields, " }", |this, field| {
                    this.field(&field.name, &field.ty)
                });
            }
            TypeDefKind::Variant(variant) => self.list("variant { ", &variant.cases, " }", |this, case| {
                this.push(&case.name);
                this.push("(");
                this.optional(case.ty.as_ref());
                this.push(")");
            }),
            TypeDefKind::Enum(cases) => {
                self.list("enum { ", &cases.cases, " }", |this, case| this.push(&case.name));
            }
            TypeDefKind::Flags(flags) => {
                self.list("flags { ", &flags.flags, " }", |this, flag| this.push(&flag.name));
            }
            TypeDefKind::Tuple(tuple) => self.list("tuple<", &tuple.types, ">", Self::ty),
            TypeDefKind::Option(ty) => self.list("option<", &[*ty], ">", Self::ty),
            TypeDefKind::List(ty) => self.list("list<", &[*ty], ">", Self::ty),
            TypeDefKind::Result(result) => {
                let both = [result.ok, result.err];
                self.list("result<", &both, ">", |this, ty| this.optional(ty.as_ref()));
            }
            TypeDefKind::Handle(Handle::Own(_)) => self.push("own<resource>"),
            TypeDefKind::Handle(Handle::Borrow(_)) => self.push("borrow<resource>"),
            // None of these stands in the contract; each is told apart from all that does.
            other => self.push(other.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_signatures_are_written_whole() {
        let contract = Contract::read().unwrap();
        let longest = contract.interfaces.values().flat_map(BTreeMap::values).map(String::len).max();
        assert!(longest.is_some_and(|longest| longest * 2 <= LONGEST_SIGNATURE), "{longest:?}");
    }
}
