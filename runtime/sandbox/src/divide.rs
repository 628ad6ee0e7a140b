//! What components share: core modules that they hold byte for byte, as all charms in Python hold the same interpreter.
//!
//! A large component is divided before it is compiled. Each module of much code is compiled by itself, once for all
//! components that hold it, and the component imports it under its digest where it held it. A charm can tell no
//! difference: the module is instantiated at the same point with the same imports. How a component is divided depends on
//! its bytes alone, so whoever divides it again comes to the same parts.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use periapt_host_api::CharmDigest;
use wasm_encoder::{
    Component, ComponentImportSection, ComponentTypeRef, CoreTypeSection, FuncType, ModuleType, RawSection,
    reencode::{Error as EncodeError, Reencode as _, RoundtripReencoder},
};
use wasmparser::{
    BinaryReader, BinaryReaderError, ExportSectionReader, ExternalKind, FunctionSectionReader,
    GlobalSectionReader, GlobalType, ImportSectionReader, MemorySectionReader, MemoryType, SectionLimited,
    TableSectionReader, TableType, TypeRef, TypeSectionReader,
};

/// The smallest component, in bytes, that is divided: an interpreter. A charm in Rust or C is compiled in less time than it
/// takes to start a second compilation.
const SMALLEST_COMPONENT: usize = 4 << 20;

/// The least code, in bytes, of a module that is compiled by itself.
const LEAST_CODE: usize = 128 << 10;

/// The most modules of a component that are compiled by themselves. Python's has three.
pub const MOST_MODULES: usize = 8;

/// Bytes that say what a file is and of which version, before its first section.
const HEADER: usize = 8;

/// Numbers of sections, of the binary formats of components and of modules.
mod section {
    pub(super) const CORE_MODULE: u8 = 1;
    pub(super) const CORE_TYPE: u8 = 3;
    pub(super) const TYPE: u8 = 1;
    pub(super) const IMPORT: u8 = 2;
    pub(super) const FUNCTION: u8 = 3;
    pub(super) const TABLE: u8 = 4;
    pub(super) const MEMORY: u8 = 5;
    pub(super) const GLOBAL: u8 = 6;
    pub(super) const EXPORT: u8 = 7;
    pub(super) const CODE: u8 = 10;
}

/// A module that components share.
#[derive(Debug, Clone)]
pub struct SharedModule {
    /// Of its bytes.
    pub digest: CharmDigest,
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
    pub(crate) fn import_name(digest: &CharmDigest) -> String {
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
    let sections = sections(component)?;
    if sections.iter().any(|section| section.id == section::CORE_TYPE) {
        // Those that are added would take the numbers of its own. No toolchain makes any.
        return Ok(Vec::new());
    }
    let mut found: Vec<SharedModule> = Vec::new();
    for section in sections.iter().filter(|section| section.id == section::CORE_MODULE) {
        let bytes = section.bytes(component);
        let Some(shape) = shape(bytes).ok().flatten() else { continue };
        let digest = CharmDigest::of(bytes);
        // One that is there twice stays where it is the second time: names of imports are unique.
        if found.len() < MOST_MODULES && found.iter().all(|module| module.digest != digest) {
            found.push(SharedModule { digest, range: section.range.clone(), shape });
        }
    }
    Ok(found)
}

/// The component, but that it imports the modules which [`shared_modules`] found in it instead of holding them.
pub(crate) fn rest<'a>(component: &'a [u8], modules: &[SharedModule]) -> Cow<'a, [u8]> {
    match sections(component) {
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

/// A section of a component or of a module.
struct Section {
    id: u8,
    /// Where its content lies.
    range: Range<usize>,
}

impl Section {
    fn bytes<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        all.get(self.range.clone()).unwrap_or_default()
    }

    /// Its content as a list.
    fn list<'a, T>(&self, all: &'a [u8]) -> Result<SectionLimited<'a, T>, BinaryReaderError> {
        SectionLimited::new(BinaryReader::new(self.bytes(all), self.range.start))
    }
}

/// The sections of the outermost level, in their order.
fn sections(bytes: &[u8]) -> Result<Vec<Section>, BinaryReaderError> {
    let mut reader = BinaryReader::new(bytes, 0);
    reader.read_bytes(HEADER)?;
    let mut sections = Vec::new();
    while !reader.eof() {
        let (id, length) = (reader.read_u8()?, reader.read_var_u32()?);
        let start = reader.current_position();
        reader.read_bytes(length as usize)?;
        sections.push(Section { id, range: start..reader.current_position() });
    }
    Ok(sections)
}

/// What a module imports and exports, if it has much code and can be imported: its imports have different names, and it
/// uses nothing of later proposals.
fn shape(module: &[u8]) -> Result<Option<ModuleType>, EncodeError> {
    let sections = sections(module)?;
    let code =
        sections.iter().filter(|section| section.id == section::CODE).map(|section| section.range.len());
    if code.sum::<usize>() < LEAST_CODE {
        return Ok(None);
    }
    let (mut shape, mut spaces, mut encoder) = (ModuleType::new(), Spaces::default(), RoundtripReencoder);
    let mut names = BTreeSet::new();
    for section in &sections {
        match section.id {
            section::TYPE => {
                let types: TypeSectionReader<'_> = section.list(module)?;
                for function in types.into_iter_err_on_gc_types() {
                    let function: FuncType = encoder.func_type(function?)?;
                    shape.ty().func_type(&function);
                }
            }
            section::IMPORT => {
                let imports: ImportSectionReader<'_> = section.list(module)?;
                for import in imports.into_imports() {
                    let import = import?;
                    spaces.add(import.ty);
                    shape.import(import.module, import.name, encoder.entity_type(import.ty)?);
                    if !names.insert((import.module, import.name)) {
                        return Ok(None);
                    }
                }
            }
            section::EXPORT => {
                let exports: ExportSectionReader<'_> = section.list(module)?;
                for export in exports {
                    let export = export?;
                    let Some(ty) = spaces.of(export.kind, export.index) else { return Ok(None) };
                    shape.export(export.name, encoder.entity_type(ty)?);
                }
            }
            _ => spaces.add_defined(section, module)?,
        }
    }
    Ok(Some(shape))
}

/// What a module's numbers stand for: what it imports and what it defines, in one list for each kind.
#[derive(Default)]
struct Spaces {
    functions: Vec<u32>,
    tables: Vec<TableType>,
    memories: Vec<MemoryType>,
    globals: Vec<GlobalType>,
}

impl Spaces {
    fn add(&mut self, ty: TypeRef) {
        match ty {
            TypeRef::Func(ty) => self.functions.push(ty),
            TypeRef::Table(ty) => self.tables.push(ty),
            TypeRef::Memory(ty) => self.memories.push(ty),
            TypeRef::Global(ty) => self.globals.push(ty),
            // Later proposals', which the engine refuses.
            TypeRef::Tag(_) | TypeRef::FuncExact(_) => {}
        }
    }

    fn add_defined(&mut self, section: &Section, module: &[u8]) -> Result<(), BinaryReaderError> {
        match section.id {
            section::FUNCTION => {
                let functions: FunctionSectionReader<'_> = section.list(module)?;
                for ty in functions {
                    self.functions.push(ty?);
                }
            }
            section::TABLE => {
                let tables: TableSectionReader<'_> = section.list(module)?;
                for table in tables {
                    self.tables.push(table?.ty);
                }
            }
            section::MEMORY => {
                let memories: MemorySectionReader<'_> = section.list(module)?;
                for memory in memories {
                    self.memories.push(memory?);
                }
            }
            section::GLOBAL => {
                let globals: GlobalSectionReader<'_> = section.list(module)?;
                for global in globals {
                    self.globals.push(global?.ty);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn of(&self, kind: ExternalKind, index: u32) -> Option<TypeRef> {
        let index = index as usize;
        match kind {
            ExternalKind::Func => self.functions.get(index).copied().map(TypeRef::Func),
            ExternalKind::Table => self.tables.get(index).copied().map(TypeRef::Table),
            ExternalKind::Memory => self.memories.get(index).copied().map(TypeRef::Memory),
            ExternalKind::Global => self.globals.get(index).copied().map(TypeRef::Global),
            ExternalKind::Tag | ExternalKind::FuncExact => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use wasmtime::{Engine, Module, Store, component};

    use super::*;
    use crate::{Options, engine};

    /// A module of much code, whose `f` doubles what it gets from `env.f`.
    fn module(imports: &str) -> String {
        let much = "(drop (i32.const 123456789))".repeat(LEAST_CODE / 5);
        format!(
            "(core module $big {imports} (import \"env\" \"f\" (func $f (result i32)))
                (memory (export \"m\") 1) (table (export \"t\") 1 funcref) (global (export \"g\") i32 (i32.const 7))
                (func (export \"f\") (result i32) (i32.mul (call $f) (i32.const 2)))
                (func (export \"much\") {much}))"
        )
    }

    /// A large component: of what is given, with an instance of the large module and its `f`, of which others are told.
    fn component(before: &str, big: &str, after: &str) -> Vec<u8> {
        let text = format!(
            "(component {before}
                (core module $env (func (export \"f\") (result i32) (i32.const 21)))
                {big}
                (core instance $env (instantiate $env))
                (core instance $one (instantiate $big (with \"env\" (instance $env))))
                (func (export \"f\") (result u32) (canon lift (core func $one \"f\")))
                {after})"
        );
        let mut bytes = wat::parse_str(text).unwrap();
        // A custom section: its number, its length, and a name that is empty.
        bytes.push(0);
        let filler = vec![0; SMALLEST_COMPONENT];
        bytes.extend(leb(filler.len()));
        bytes.extend(filler);
        bytes
    }

    fn leb(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// What `f` of a component answers when its modules come from outside.
    fn answer(engine: &Engine, bytes: &[u8]) -> u32 {
        let shared = shared_modules(bytes);
        let rest = component::Component::from_binary(engine, &rest(bytes, &shared)).unwrap();
        let mut linker = component::Linker::new(engine);
        for module in &shared {
            let name = SharedModule::import_name(&module.digest);
            let module = Module::from_binary(engine, &bytes[module.range.clone()]).unwrap();
            linker.root().module(&name, &module).unwrap();
        }
        let mut store = Store::new(engine, ());
        store.set_fuel(1_000_000).unwrap();
        store.set_epoch_deadline(1);
        let instance = linker.instantiate(&mut store, &rest).unwrap();
        instance.get_typed_func::<(), (u32,)>(&mut store, "f").unwrap().call(&mut store, ()).unwrap().0
    }

    #[test]
    fn a_module_of_much_code_is_compiled_by_itself_and_the_rest_runs_with_it() {
        let engine = engine::build(&Options::default()).unwrap();
        let bytes = component("", &module(""), "");
        let shared = shared_modules(&bytes);
        assert_eq!(shared.len(), 1);
        assert!(rest(&bytes, &shared).len() + LEAST_CODE < bytes.len());
        assert_eq!(answer(&engine, &bytes), 42);
        let other = component("(core module $more)", &module(""), "");
        assert_eq!(shared_modules(&other)[0].digest, shared[0].digest, "another component shares it");
        assert_eq!(answer(&engine, &other), 42);
    }

    #[test]
    fn a_module_that_is_there_twice_is_imported_once() {
        let engine = engine::build(&Options::default()).unwrap();
        let bytes = component("", &module(""), &module("").replace("$big", "$again (@name \"big\")"));
        assert_eq!(shared_modules(&bytes).len(), 1);
        assert_eq!(answer(&engine, &bytes), 42);
    }

    #[test]
    fn what_cannot_be_imported_stays_where_it_is() {
        let twice = module("(import \"env\" \"f\" (func (result i32)))");
        let types = "(core type (module))";
        for bytes in [component("", &twice, ""), component(types, &module(""), "")] {
            assert!(shared_modules(&bytes).is_empty());
        }
        let small = wat::parse_str("(component (core module))").unwrap();
        assert!(matches!(rest(&small, &shared_modules(&small)), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_cut_short_or_no_component_is_left_to_the_compiler() {
        let bytes = wat::parse_str(format!("(component {} (core instance))", module(""))).unwrap();
        for end in (0..bytes.len()).step_by(97) {
            let cut = &bytes[..end];
            find(cut).unwrap_or_default();
            let _ = shape(cut);
        }
        assert!(shared_modules(&vec![0xff; SMALLEST_COMPONENT]).is_empty());
        assert!(find(&bytes).unwrap().len() == 1, "it is small, but for that it would be divided");
    }

    #[test]
    fn no_more_modules_than_may_be_go_by_themselves() {
        let more: String = (0..=MOST_MODULES)
            .map(|number| {
                let own = format!("(func (export \"{number}\") ");
                module("").replace("$big", &format!("$m{number}")).replace("(func (export \"much\")", &own)
            })
            .collect();
        let bytes = component("", &module(""), &more);
        assert_eq!(shared_modules(&bytes).len(), MOST_MODULES);
    }
}
