//! A component's imports and exports with their types, as the engine's own validator reads them.
//!
//! The validator is made for untrusted bytes: it bounds the depth and the size of types, and returns an error for any
//! invalid component. A decoder to WIT does not: it assumes that a component was made from WIT.

use std::collections::BTreeMap;

use wasmparser::{
    BinaryReaderError, Encoding, Parser, Payload, ValidPayload, Validator, WasmFeatures,
    component_types::{ComponentEntityType, ComponentInstanceTypeId, ComponentItem},
    types::Types,
};

use super::{WorldError, shortened};

/// The items of a component by name; instances with their type.
pub(super) type Items = BTreeMap<String, Option<ComponentInstanceTypeId>>;

/// The items that a component shows to its host.
pub(super) struct Decoded {
    pub(super) types: Types,
    pub(super) imports: Items,
    pub(super) exports: Items,
}

impl Decoded {
    /// Reads a component. The compiler validates the bodies of functions later.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, WorldError> {
        let unreadable = |error: BinaryReaderError| WorldError::NotAComponent(shortened(&error.to_string()));
        // The engine refuses compact imports, which name their module once for many imports. Here each import would
        // be written out.
        let features = WasmFeatures::all().difference(WasmFeatures::COMPACT_IMPORTS);
        let (mut parser, mut validator) = (Parser::new(0), Validator::new_with_features(features));
        parser.set_features(features);
        let (mut depth, mut imports, mut exports) = (0_u32, Vec::new(), Vec::new());
        for payload in parser.parse_all(bytes) {
            let payload = payload.map_err(unreadable)?;
            let valid = validator.payload(&payload).map_err(unreadable)?;
            match payload {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(WorldError::NotAComponent("it is a core module".to_owned()));
                }
                Payload::Version { .. } => depth += 1,
                Payload::ComponentImportSection(section) if depth == 1 => {
                    for import in section {
                        imports.push(import.map_err(unreadable)?.name.name);
                    }
                }
                Payload::ComponentExportSection(section) if depth == 1 => {
                    for export in section {
                        exports.push(export.map_err(unreadable)?.name.name);
                    }
                }
                _ => {}
            }
            let ValidPayload::End(types) = valid else { continue };
            depth = depth.saturating_sub(1);
            if depth == 0 {
                let imports = items(&imports, |name| types.component_item_for_import(name));
                let exports = items(&exports, |name| types.component_item_for_export(name));
                return Ok(Self { types, imports, exports });
            }
        }
        Err(WorldError::NotAComponent("it ends too early".to_owned()))
    }
}

fn items<'a>(names: &[&str], of: impl Fn(&str) -> Option<&'a ComponentItem>) -> Items {
    let instance = |name: &str| match of(name)?.ty {
        ComponentEntityType::Instance(id) => Some(id),
        _ => None,
    };
    names.iter().map(|name| ((*name).to_owned(), instance(name))).collect()
}
