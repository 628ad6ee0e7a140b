//! The count of instances of each module in a component.

use wasmparser::{
    BinaryReaderError, ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    ComponentTypeRef, FromReader, Instance, Parser, Payload, SectionLimited,
};

/// Returns the number of instances of each module at the outermost level, in order. Returns an empty list if a module
/// is aliased, imported, exported or passed on, because then the count could be wrong.
pub(super) fn of_modules(component: &[u8]) -> Result<Vec<u32>, BinaryReaderError> {
    let (mut instances, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        let passed_on = match payload? {
            Payload::ModuleSection { .. } => {
                if depth == 0 {
                    instances.push(0);
                }
                depth += 1;
                false
            }
            Payload::ComponentSection { .. } => {
                depth += 1;
                false
            }
            Payload::End(_) => {
                depth = depth.saturating_sub(1);
                false
            }
            Payload::InstanceSection(reader) if depth == 0 => {
                for instance in reader {
                    if let Instance::Instantiate { module_index, .. } = instance?
                        && let Some(count) = instances.get_mut(module_index as usize)
                    {
                        *count += 1;
                    }
                }
                false
            }
            Payload::ComponentAliasSection(items) => any(items, |alias| match alias {
                ComponentAlias::InstanceExport { kind, .. } => kind == ComponentExternalKind::Module,
                ComponentAlias::Outer { kind, .. } => kind == ComponentOuterAliasKind::CoreModule,
                ComponentAlias::CoreInstanceExport { .. } => false,
            })?,
            Payload::ComponentInstanceSection(items) => any(items, |instance| match instance {
                ComponentInstance::Instantiate { args, .. } => {
                    args.iter().any(|argument| argument.kind == ComponentExternalKind::Module)
                }
                ComponentInstance::FromExports(exports) => {
                    exports.iter().any(|export| export.kind == ComponentExternalKind::Module)
                }
            })?,
            Payload::ComponentImportSection(items) => {
                any(items, |import| matches!(import.ty, ComponentTypeRef::Module(_)))?
            }
            Payload::ComponentExportSection(items) => {
                any(items, |export| export.kind == ComponentExternalKind::Module)?
            }
            _ => false,
        };
        if passed_on {
            return Ok(Vec::new());
        }
    }
    Ok(instances)
}

/// Returns true if a condition holds for one of a section's items.
fn any<'a, T: FromReader<'a>>(
    items: SectionLimited<'a, T>,
    holds: impl Fn(T) -> bool,
) -> Result<bool, BinaryReaderError> {
    for item in items {
        if holds(item?) {
            return Ok(true);
        }
    }
    Ok(false)
}
