//! Signatures of functions, with all types written out.

use wasmparser::{
    component_types::{ComponentDefinedType, ComponentFuncType, ComponentValType},
    types::Types,
};

/// The most bytes of a signature: twice the longest of the contract's. An untrusted signature, with all types written
/// out, could be longer than any memory.
pub(super) const LONGEST: usize = 8 << 10;

/// A function's signature during writing, with all parts of each type. Types are compared by structure: names of
/// types do not count, names of fields and cases do.
///
/// Each type writes something, so the bound on the text also bounds the recursion.
pub(super) struct Signature<'a> {
    types: &'a Types,
    text: String,
}

impl<'a> Signature<'a> {
    pub(super) fn of(types: &'a Types, function: &ComponentFuncType) -> String {
        let mut signature = Self { types, text: String::new() };
        if function.async_ {
            signature.push("async ");
        }
        signature.list("func(", &*function.params, ")", |this, (name, ty)| this.field(name, ty));
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
        self.text.len() >= LONGEST
    }

    /// Appends as much of a text as the bound allows.
    fn push(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.text.len());
        self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    }

    fn list<T>(
        &mut self,
        open: &str,
        items: impl IntoIterator<Item = T>,
        close: &str,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.push(open);
        for (number, item) in items.into_iter().enumerate() {
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

    fn field(&mut self, name: &str, ty: &ComponentValType) {
        self.push(name);
        self.push(": ");
        self.ty(ty);
    }

    fn optional(&mut self, ty: Option<&ComponentValType>) {
        match ty {
            Some(ty) => self.ty(ty),
            None => self.push("_"),
        }
    }

    fn ty(&mut self, ty: &ComponentValType) {
        if self.is_full() {
            return;
        }
        let id = match ty {
            ComponentValType::Primitive(ty) => return self.push(&ty.to_string()),
            ComponentValType::Type(id) => *id,
        };
        let types = self.types;
        match &types[id] {
            ComponentDefinedType::Primitive(ty) => self.push(&ty.to_string()),
            ComponentDefinedType::Record(record) => {
                self.list("record { ", &record.fields, " }", |this, (name, ty)| this.field(name, ty));
            }
            ComponentDefinedType::Variant(variant) => {
                self.list("variant { ", &variant.cases, " }", |this, (name, case)| {
                    this.push(name);
                    this.push("(");
                    this.optional(case.ty.as_ref());
                    this.push(")");
                });
            }
            ComponentDefinedType::Enum(cases) => {
                self.list("enum { ", cases, " }", |this, case| this.push(case));
            }
            ComponentDefinedType::Flags(flags) => {
                self.list("flags { ", flags, " }", |this, flag| this.push(flag));
            }
            ComponentDefinedType::Tuple(tuple) => self.list("tuple<", &*tuple.types, ">", Self::ty),
            ComponentDefinedType::Option { ty, .. } => self.list("option<", [ty], ">", Self::ty),
            ComponentDefinedType::List { element, .. } => self.list("list<", [element], ">", Self::ty),
            ComponentDefinedType::Result { ok, err, .. } => {
                self.list("result<", [ok.as_ref(), err.as_ref()], ">", Self::optional);
            }
            ComponentDefinedType::Own(_) => self.push("own<resource>"),
            ComponentDefinedType::Borrow(_) => self.push("borrow<resource>"),
            // The contract has none of these types. Each has a name that differs from all of the contract's.
            ComponentDefinedType::Map { .. } => self.push("map"),
            ComponentDefinedType::FixedLengthList { .. } => self.push("fixed-length list"),
            ComponentDefinedType::Future { .. } => self.push("future"),
            ComponentDefinedType::Stream { .. } => self.push("stream"),
        }
    }
}
