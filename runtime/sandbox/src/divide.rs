//! What components share: core modules that they hold byte for byte, as all charms in Python hold the same interpreter.
//!
//! A large component is divided before it is compiled. Each module of much code is compiled by itself, once for all
//! components that hold it, and the component imports it under its digest where it held it. A charm can tell no
//! difference: the module is instantiated at the same point with the same imports. How a component is divided depends on
//! its bytes alone, so whoever divides it again comes to the same parts.
//!
//! A divided component is as bounded as a whole one. What the engine counts of a component when it is loaded it does not
//! count of modules that it imports, so only such are shared as would add nothing to that: they have no memory and no
//! table of their own, and the component instantiates each once.

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

/// The version of these rules: with others a component that was compiled without its modules would miss them, or bring
/// some of them itself. It is part of what compiled code is known by.
pub(crate) const VERSION: u32 = 3;

/// The smallest component, in bytes, that is divided: an interpreter. A charm in Rust or C is compiled in less time than it
/// takes to start a second compilation.
const SMALLEST_COMPONENT: usize = 4 << 20;

/// The least code, in bytes, of a module that is compiled by itself.
const LEAST_CODE: usize = 128 << 10;

/// The most modules of a component that are compiled by themselves. Python's has three, and one for each library in native
/// code.
pub const MOST_MODULES: usize = 12;

/// A module that components share.
#[derive(Debug, Clone)]
pub struct SharedModule {
    /// Of its bytes.
    pub digest: Digest,
    /// Where in the component it lies.
    pub range: Range<usize>,
    /// What it imports and exports.
    shape: ModuleType,
}

impl SharedModule {
    /// It, out of its component.
    pub fn bytes<'a>(&self, component: &'a [u8]) -> &'a [u8] {
        component.get(self.range.clone()).unwrap_or_default()
    }

    /// The name under which the rest of the component imports it.
    pub(crate) fn import_name(digest: &Digest) -> String {
        format!("module-d{digest}")
    }
}

/// The modules of a component that are compiled by themselves, in their order: none of one that is small, and none of one
/// that is no component, which the compiler then refuses.
pub fn shared_modules(component: &[u8]) -> Vec<SharedModule> {
    if component.len() < SMALLEST_COMPONENT {
        return Vec::new();
    }
    find(component).unwrap_or_default()
}

fn find(component: &[u8]) -> Result<Vec<SharedModule>, BinaryReaderError> {
    let sections = sections::read(component, Kind::Component)?;
    // Core types that are added would take the numbers of its own. No toolchain makes any.
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
        // One that is there twice stays where it is the second time: names of imports are unique.
        if found.len() < MOST_MODULES && found.iter().all(|module| module.digest != digest) {
            found.push(SharedModule { digest, range: section.range.clone(), shape });
        }
    }
    Ok(found)
}

/// The component, but that it imports the modules which [`shared_modules`] found in it instead of holding them.
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
