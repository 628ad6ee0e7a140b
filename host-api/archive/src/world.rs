//! Checking a component against the world `periapt:charm/charm`, by structure: what it imports must be offered,
//! what it exports must be what the agent calls.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::imports::{Grant, HANDLER_EXPORT, ImportKind};
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
    #[error("imports that cannot be linked: {}", .0.join("; "))]
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
    #[error("the component does not export {HANDLER_EXPORT}; its exports: {0}")]
    NoHandler(String),
    /// The contract itself cannot be read: a defect of this program.
    #[error("the built-in contract is broken: {0}")]
    Contract(String),
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
        _ => return Err(WorldError::NoHandler(exports.into_keys().collect::<Vec<_>>().join(", "))),
    }
    Ok(report)
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
        let found = signatures(found, id);
        for (function, signature) in &found {
            let wanted = expected.get(function).map_or("nothing of that name", String::as_str);
            if wanted != signature {
                return Err(WorldError::Mismatch {
                    name: format!("{name} {function}"),
                    expected: wanted.to_owned(),
                    found: signature.clone(),
                });
            }
        }
        if name == HANDLER_EXPORT && found.is_empty() {
            return Err(WorldError::NoHandler(format!("{name}, without its function `handle`")));
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
    interface.functions.iter().map(|(name, function)| (name.clone(), signature(resolve, function))).collect()
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let params: Vec<_> = function
        .params
        .iter()
        .map(|param| format!("{}: {}", param.name, written(resolve, &param.ty)))
        .collect();
    let result =
        function.result.as_ref().map(|ty| format!(" -> {}", written(resolve, ty))).unwrap_or_default();
    format!("func({}){result}", params.join(", "))
}

/// A type with all that it is made of: types are compared by structure, so names of types do not count, names of
/// fields and cases do.
fn written(resolve: &Resolve, ty: &Type) -> String {
    let Type::Id(id) = ty else { return format!("{ty:?}").to_lowercase() };
    let Some(definition) = resolve.types.get(*id) else { return "unknown".into() };
    let optional = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "_".to_owned(), |ty| written(resolve, ty));
    let list = |items: Vec<String>| items.join(", ");
    match &definition.kind {
        TypeDefKind::Type(ty) => written(resolve, ty),
        TypeDefKind::Record(record) => {
            let fields =
                record.fields.iter().map(|field| format!("{}: {}", field.name, written(resolve, &field.ty)));
            format!("record {{ {} }}", list(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter().map(|case| format!("{}({})", case.name, optional(&case.ty)));
            format!("variant {{ {} }}", list(cases.collect()))
        }
        TypeDefKind::Enum(cases) => {
            format!("enum {{ {} }}", list(cases.cases.iter().map(|case| case.name.clone()).collect()))
        }
        TypeDefKind::Flags(flags) => {
            format!("flags {{ {} }}", list(flags.flags.iter().map(|flag| flag.name.clone()).collect()))
        }
        TypeDefKind::Tuple(tuple) => {
            format!("tuple<{}>", list(tuple.types.iter().map(|ty| written(resolve, ty)).collect()))
        }
        TypeDefKind::Option(ty) => format!("option<{}>", written(resolve, ty)),
        TypeDefKind::List(ty) => format!("list<{}>", written(resolve, ty)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", optional(&result.ok), optional(&result.err)),
        TypeDefKind::Handle(Handle::Own(_)) => "own<resource>".into(),
        TypeDefKind::Handle(Handle::Borrow(_)) => "borrow<resource>".into(),
        // None of these stands in the contract; each is told apart from all that does.
        other => other.as_str().to_owned(),
    }
}
