//! The contract as TypeScript declarations for the checks of the SDK for JavaScript: a module for each interface, with
//! the value types of `componentize-qjs`.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use wit_bindgen_core::wit_parser::{
    Docs, Function, InterfaceId, Resolve, Type, TypeDefKind, TypeId, TypeOwner, WorldId, WorldItem,
};

const HEAD: &str = "// Generated from host-api/wit by `cargo run -p periapt-bindings`. DO NOT EDIT!\n";

/// Returns the declarations of all interfaces that a world imports.
pub(crate) fn declarations(resolve: &Resolve, world: WorldId) -> Result<String> {
    let mut text = HEAD.to_owned();
    let world = resolve.worlds.get(world).context("the world")?;
    for (key, item) in &world.imports {
        if let WorldItem::Interface { id, .. } = item {
            let module = Module { resolve, interface: *id };
            write!(text, "\ndeclare module \"{}\" {{\n{}}}\n", resolve.name_world_key(key), module.body()?)?;
        }
    }
    Ok(text)
}

struct Module<'a> {
    resolve: &'a Resolve,
    interface: InterfaceId,
}

impl Module<'_> {
    fn body(&self) -> Result<String> {
        let interface = self.resolve.interfaces.get(self.interface).context("an interface")?;
        let mut text = String::new();
        for (name, id) in &interface.types {
            let definition = self.resolve.types.get(*id).context("a type")?;
            // Types of other interfaces are declared there.
            if !matches!(definition.kind, TypeDefKind::Type(Type::Id(_))) {
                document(&mut text, &definition.docs)?;
                writeln!(text, "  export type {} = {};", pascal(name), self.structure(*id)?)?;
            }
        }
        for (name, function) in &interface.functions {
            document(&mut text, &function.docs)?;
            // A module can export reserved words such as `delete`, but not declare them.
            let own = camel(name);
            let declared = if is_reserved(&own) { format!("{own}_") } else { own.clone() };
            writeln!(
                text,
                "  {}function {declared}{};",
                exported(&own, &declared),
                self.signature(function)?
            )?;
            if own != declared {
                writeln!(text, "  export {{ {declared} as {own} }};")?;
            }
        }
        Ok(text)
    }

    /// Returns a function's signature. Errors are thrown, so the signature leaves them out.
    fn signature(&self, function: &Function) -> Result<String> {
        let mut params = Vec::new();
        for param in &function.params {
            let name = camel(&param.name);
            let name = if is_reserved(&name) { format!("{name}_") } else { name };
            params.push(format!("{name}: {}", self.named(&param.ty)?));
        }
        let result = match &function.result {
            None => "void".to_owned(),
            Some(ty) => match self.result_of(ty) {
                Some(None) => "void".to_owned(),
                Some(Some(ok)) => self.named(&ok)?,
                None => self.named(ty)?,
            },
        };
        Ok(format!("({}): {result}", params.join(", ")))
    }

    /// Returns the success type of a result type.
    fn result_of(&self, ty: &Type) -> Option<Option<Type>> {
        let Type::Id(id) = ty else { return None };
        match &self.resolve.types.get(*id)?.kind {
            TypeDefKind::Result(result) => Some(result.ok),
            _ => None,
        }
    }

    /// Returns a type's name, or its structure if it has no name.
    fn named(&self, ty: &Type) -> Result<String> {
        let id = match ty {
            Type::Bool => return Ok("boolean".into()),
            Type::String | Type::Char => return Ok("string".into()),
            Type::Id(id) => self.resolved(*id)?,
            _ => return Ok("number".into()),
        };
        let definition = self.resolve.types.get(id).context("a type")?;
        match (&definition.name, definition.owner) {
            (Some(name), TypeOwner::Interface(owner)) if owner == self.interface => Ok(pascal(name)),
            (Some(name), TypeOwner::Interface(owner)) => {
                let module = self.resolve.id_of(owner).context("an interface has a name")?;
                Ok(format!("import(\"{module}\").{}", pascal(name)))
            }
            _ => self.structure(id),
        }
    }

    /// Follows type aliases to the type itself.
    fn resolved(&self, id: TypeId) -> Result<TypeId> {
        match self.resolve.types.get(id).context("a type")?.kind {
            TypeDefKind::Type(Type::Id(other)) => self.resolved(other),
            _ => Ok(id),
        }
    }

    fn structure(&self, id: TypeId) -> Result<String> {
        let kind = &self.resolve.types.get(id).context("a type")?.kind;
        Ok(match kind {
            TypeDefKind::Type(ty) => self.named(ty)?,
            TypeDefKind::Record(record) => {
                let fields = record.fields.iter();
                let fields = fields.map(|it| Ok(format!("{}: {}", camel(&it.name), self.named(&it.ty)?)));
                format!("{{ {} }}", fields.collect::<Result<Vec<_>>>()?.join("; "))
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter().map(|case| match &case.ty {
                    Some(ty) => Ok(format!("{{ tag: \"{}\"; val: {} }}", case.name, self.named(ty)?)),
                    None => Ok(format!("{{ tag: \"{}\" }}", case.name)),
                });
                cases.collect::<Result<Vec<_>>>()?.join(" | ")
            }
            TypeDefKind::Enum(cases) => {
                let cases = cases.cases.iter().map(|case| format!("\"{}\"", case.name));
                cases.collect::<Vec<_>>().join(" | ")
            }
            TypeDefKind::Option(ty) => format!("{} | null", self.named(ty)?),
            TypeDefKind::List(Type::U8) => "Uint8Array".into(),
            TypeDefKind::List(ty) => format!("Array<{}>", self.named(ty)?),
            TypeDefKind::Tuple(tuple) => {
                let types = tuple.types.iter().map(|ty| self.named(ty)).collect::<Result<Vec<_>>>()?;
                format!("[{}]", types.join(", "))
            }
            other => anyhow::bail!("no TypeScript for {other:?}"),
        })
    }
}

fn exported(own: &str, declared: &str) -> &'static str {
    if own == declared { "export " } else { "" }
}

fn is_reserved(name: &str) -> bool {
    ["delete", "default", "export", "import", "new"].contains(&name)
}

fn document(text: &mut String, docs: &Docs) -> Result<()> {
    if let Some(docs) = &docs.contents {
        writeln!(text, "  /** {} */", docs.trim().replace('\n', " "))?;
    }
    Ok(())
}

fn pascal(name: &str) -> String {
    name.split('-').map(capital).collect()
}

fn camel(name: &str) -> String {
    let mut parts = name.split('-');
    parts.next().into_iter().map(str::to_owned).chain(parts.map(capital)).collect()
}

fn capital(part: &str) -> String {
    let mut letters = part.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
