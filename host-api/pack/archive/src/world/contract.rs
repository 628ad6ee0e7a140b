//! The interfaces of the contract, in the form in which a component's are read.

use std::{collections::BTreeMap, fmt, sync::OnceLock};

use periapt_host_api::imports::HANDLER_EXPORT;
use wasmparser::{
    component_types::{ComponentAnyTypeId, ComponentEntityType, ComponentInstanceTypeId},
    types::Types,
};
use wit_parser::Resolve;

use super::{WIT, WorldError, decoded::Decoded, shortened, signature::Signature};

/// The functions of each interface, with signatures that write out all types.
pub(super) struct Contract {
    interfaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl Contract {
    /// Returns this program's contract.
    pub(super) fn get() -> Result<&'static Self, WorldError> {
        static CONTRACT: OnceLock<Result<Contract, WorldError>> = OnceLock::new();
        CONTRACT.get_or_init(Self::read).as_ref().map_err(Clone::clone)
    }

    /// Reads the contract through its binary form, so that the same code writes both sides of a comparison.
    fn read() -> Result<Self, WorldError> {
        let unreadable = |error: &dyn fmt::Display| WorldError::Contract(format!("{error:#}"));
        let mut resolve = Resolve::default();
        let package = resolve.push_str("charm.wit", WIT).map_err(|error| unreadable(&error))?;
        let binary = wit_component::encode(&resolve, package).map_err(|error| unreadable(&error))?;
        let Decoded { types, exports, .. } = Decoded::read(&binary).map_err(|error| unreadable(&error))?;
        let mut interfaces = BTreeMap::new();
        for name in exports.keys() {
            // Each export is a component type that exports the one interface, or a world.
            let Some(ComponentEntityType::Type { created: ComponentAnyTypeId::Component(id), .. }) =
                types.component_item_for_export(name).map(|item| item.ty)
            else {
                continue;
            };
            for (name, item) in &types[id].exports {
                if let ComponentEntityType::Instance(id) = item.ty {
                    let signatures = functions(&types, id);
                    interfaces.insert(name.clone(), signatures.map(|(name, of)| (name, of())).collect());
                }
            }
        }
        Ok(Self { interfaces })
    }

    /// Checks that each function of a component's import equals the contract's. The component may leave functions
    /// out.
    pub(super) fn check(
        &self,
        found: &Types,
        name: &str,
        id: ComponentInstanceTypeId,
    ) -> Result<(), WorldError> {
        let Some(expected) = self.interfaces.get(name) else {
            return Err(WorldError::Contract(format!("{name} is offered and not described")));
        };
        let mut count = 0_usize;
        // The check ends at the first difference, as an untrusted component may have very many functions.
        for (function, signature) in functions(found, id) {
            count += 1;
            let wanted = expected.get(&function).map_or("nothing of that name", String::as_str);
            let signature = signature();
            if wanted != signature {
                return Err(WorldError::Mismatch {
                    name: format!("{name} {}", shortened(&function)),
                    expected: wanted.to_owned(),
                    found: signature,
                });
            }
        }
        match name == HANDLER_EXPORT && count == 0 {
            true => Err(WorldError::NoHandler(vec![format!("{name}, without its function `handle`")])),
            false => Ok(()),
        }
    }
}

/// Returns an interface's functions by name, each with a function that writes its signature.
fn functions(
    types: &Types,
    id: ComponentInstanceTypeId,
) -> impl Iterator<Item = (String, impl Fn() -> String)> {
    types[id].exports.iter().filter_map(move |(name, item)| match item.ty {
        ComponentEntityType::Func(id) => Some((name.clone(), move || Signature::of(types, &types[id]))),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::signature::LONGEST, *};

    #[test]
    fn the_contracts_signatures_are_written_whole() {
        let contract = Contract::read().unwrap();
        let longest = contract.interfaces.values().flat_map(BTreeMap::values).map(String::len).max();
        assert!(longest.is_some_and(|longest| longest * 2 <= LONGEST), "{longest:?}");
    }

    #[test]
    fn each_interface_of_the_contract_is_there_with_its_functions() {
        let contract = Contract::read().unwrap();
        for (interface, function) in [("handler", "handle"), ("leadership", "is-leader"), ("state", "get")] {
            let functions = contract.interfaces.get(&format!("periapt:charm/{interface}@0.1.0"));
            assert!(functions.is_some_and(|functions| functions.contains_key(function)), "{interface}");
        }
        let leader = &contract.interfaces["periapt:charm/leadership@0.1.0"]["is-leader"];
        assert!(leader.starts_with("func() -> result<bool, variant { "), "{leader}");
    }
}
