//! The imports and exports of a module.

use std::collections::BTreeSet;

use wasm_encoder::{
    FuncType, ModuleType,
    reencode::{Error as EncodeError, Reencode as _, RoundtripReencoder},
};
use wasmparser::{
    BinaryReaderError, ExportSectionReader, ExternalKind, FunctionSectionReader, GlobalSectionReader,
    GlobalType, ImportSectionReader, Imports, MemoryType, TableType, TypeRef, TypeSectionReader,
};

use super::{
    LEAST_CODE,
    sections::{self, Kind, Section},
};

/// The limits on a shared module's type, import and export sections, in bytes and in entries. Each component repeats
/// them for each shared module; the interpreter's have a fifth of this.
const LARGEST: usize = 1 << 20;
const MOST_ENTRIES: u32 = 50_000;

/// Returns the imports and exports of a module that can be shared: it has much code, unique import names, no newer
/// proposals, and defines no memory and no table.
pub(super) fn of(module: &[u8]) -> Result<Option<ModuleType>, EncodeError> {
    let sections = sections::read(module, Kind::Module)?;
    let bytes_of = |ids: &[u8]| -> usize {
        sections.iter().filter(|section| ids.contains(&section.id)).map(|section| section.range.len()).sum()
    };
    if bytes_of(&[sections::CODE]) < LEAST_CODE
        || bytes_of(&[sections::TYPE, sections::IMPORT, sections::EXPORT]) > LARGEST
    {
        return Ok(None);
    }
    let (mut shape, mut spaces, mut encoder) = (ModuleType::new(), Spaces::default(), RoundtripReencoder);
    let (mut names, mut entries) = (BTreeSet::new(), 0_u32);
    for section in &sections {
        match section.id {
            sections::TYPE => {
                let types: TypeSectionReader<'_> = section.list(module)?;
                entries = entries.saturating_add(types.count());
                for function in types.into_iter_err_on_gc_types() {
                    let function: FuncType = encoder.func_type(function?)?;
                    shape.ty().func_type(&function);
                }
            }
            sections::IMPORT => {
                let imports: ImportSectionReader<'_> = section.list(module)?;
                entries = entries.saturating_add(imports.count());
                for import in imports {
                    // Compact imports share a module name, which would have to be repeated. The engine refuses them.
                    let Imports::Single(_, import) = import? else { return Ok(None) };
                    spaces.add(import.ty);
                    shape.import(import.module, import.name, encoder.entity_type(import.ty)?);
                    if !names.insert((import.module, import.name)) {
                        return Ok(None);
                    }
                }
            }
            sections::EXPORT => {
                let exports: ExportSectionReader<'_> = section.list(module)?;
                entries = entries.saturating_add(exports.count());
                for export in exports {
                    let export = export?;
                    let Some(ty) = spaces.of(export.kind, export.index) else { return Ok(None) };
                    shape.export(export.name, encoder.entity_type(ty)?);
                }
            }
            sections::TABLE | sections::MEMORY => return Ok(None),
            _ => spaces.add_defined(section, module)?,
        }
        if entries > MOST_ENTRIES {
            return Ok(None);
        }
    }
    Ok(Some(shape))
}

/// The index spaces of a module: imported and defined items, one list for each kind.
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
            // These belong to newer proposals, which the engine refuses.
            TypeRef::Tag(_) | TypeRef::FuncExact(_) => {}
        }
    }

    fn add_defined(&mut self, section: &Section, module: &[u8]) -> Result<(), BinaryReaderError> {
        match section.id {
            sections::FUNCTION => {
                let functions: FunctionSectionReader<'_> = section.list(module)?;
                for ty in functions {
                    self.functions.push(ty?);
                }
            }
            sections::GLOBAL => {
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
