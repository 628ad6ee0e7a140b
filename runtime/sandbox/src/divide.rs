//! The division of large components into modules that components share. All charms in Python contain the same
//! interpreter, byte for byte.
//!
//! Each large module is compiled once for all components that contain it. The rest of the component imports the module
//! by its digest. A charm sees no difference: the engine instantiates the module at the same point with the same
//! imports. The division depends only on the component's bytes, so it is the same in every process.
//!
//! Division does not weaken bounds. The engine does not count imported modules among a component's memories, tables and
//! instances. So a shared module must define no memory and no table, and must be instantiated exactly once.

use std::{borrow::Cow, ops::Range};

use periapt_host_api::Digest;
use wasm_encoder::{
    Component, ComponentImportSection, ComponentTypeRef, CoreTypeSection, ModuleType, RawSection,
};
use wasmparser::BinaryReaderError;

mod instances;
mod sections;
mod shape;
#[cfg(test)]
mod tests;

use sections::{Kind, Section};

/// The version of these rules, which is part of the key of compiled code: components divided by other rules need other
/// modules.
pub(crate) const VERSION: u32 = 3;

/// The smallest divided component, in bytes: smaller than an interpreter. A charm in Rust or C compiles faster than a
/// second compilation starts.
const SMALLEST_COMPONENT: usize = 4 << 20;

/// The smallest code section of a shared module, in bytes.
const LEAST_CODE: usize = 128 << 10;

/// The most shared modules of a component. A Python charm has three, and one for each native library.
pub const MOST_MODULES: usize = 12;

/// A module that components share.
#[derive(Debug, Clone)]
pub struct SharedModule {
    /// The digest of the module's bytes.
    pub digest: Digest,
    /// The module's range in the component.
    pub range: Range<usize>,
    /// The module's imports and exports.
    shape: ModuleType,
}

impl SharedModule {
    /// Returns the module's bytes from its component.
    pub fn bytes<'a>(&self, component: &'a [u8]) -> &'a [u8] {
        component.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns the name under which the rest of the component imports the module.
    pub(crate) fn import_name(digest: &Digest) -> String {
        format!("module-d{digest}")
    }
}

/// Returns the shared modules of a component, in order. Small components have none, and neither have invalid ones,
/// which the compiler then refuses.
pub fn shared_modules(component: &[u8]) -> Vec<SharedModule> {
    if component.len() < SMALLEST_COMPONENT {
        return Vec::new();
    }
    find(component).unwrap_or_default()
}

fn find(component: &[u8]) -> Result<Vec<SharedModule>, BinaryReaderError> {
    let sections = sections::read(component, Kind::Component)?;
    // Additional core types would shift the numbers of the component's own. No toolchain emits any.
    if sections.iter().any(|section| section.id == sections::CORE_TYPE) {
        return Ok(Vec::new());
    }
    let mut found: Vec<SharedModule> = Vec::new();
    let instances = instances::of_modules(component)?;
    let modules = sections.iter().filter(|section| section.id == sections::CORE_MODULE);
    for (section, instances) in modules.zip(instances) {
        let bytes = section.bytes(component);
        let Some(shape) = shape::of(bytes).ok().flatten().filter(|_| instances == 1) else { continue };
        let digest = Digest::of(bytes);
        // A second copy stays in place, because import names must be unique.
        if found.len() < MOST_MODULES && found.iter().all(|module| module.digest != digest) {
            found.push(SharedModule { digest, range: section.range.clone(), shape });
        }
    }
    Ok(found)
}

/// Returns the component with imports in place of its shared modules.
pub(crate) fn rest<'a>(component: &'a [u8], modules: &[SharedModule]) -> Cow<'a, [u8]> {
    match sections::read(component, Kind::Component) {
        Ok(sections) if !modules.is_empty() => Cow::Owned(without(component, &sections, modules)),
        _ => Cow::Borrowed(component),
    }
}

fn without(component: &[u8], sections: &[Section], modules: &[SharedModule]) -> Vec<u8> {
    let mut rest = Component::new();
    let mut types = 0;
    for section in sections {
        match modules.iter().find(|module| module.range == section.range) {
            None => {
                rest.section(&RawSection { id: section.id, data: section.bytes(component) });
            }
            Some(module) => {
                let mut shapes = CoreTypeSection::new();
                shapes.ty().module(&module.shape);
                let mut imports = ComponentImportSection::new();
                let name = SharedModule::import_name(&module.digest);
                imports.import(name.as_str(), ComponentTypeRef::Module(types));
                types += 1;
                rest.section(&shapes).section(&imports);
            }
        }
    }
    rest.finish()
}
