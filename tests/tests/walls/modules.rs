//! The modules of a crate and the imports between them, read from its sources.
//!
//! A module is a file; the content of an inline `mod` belongs to its file. An import is a path to an item of another
//! module of the same crate, in a `use` or in code (`crate::…`, `self::…`, `super::…`, or through an imported name).
//! An import through a re-export counts as one from the file that defines the item. A module and its descendants are
//! one subject, within which paths are no imports.

mod scope;
mod token;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use scope::Scope;
use token::Token;

/// The path of a module from the crate's root, whose own path is empty.
pub(crate) type ModulePath = Vec<String>;

/// The longest chain of re-exports to follow. Chains may be circular.
const MAX_DEPTH: usize = 20;

/// The modules of one crate.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    scopes: BTreeMap<ModulePath, Scope>,
    /// The module of the file that contains each module.
    files: BTreeMap<ModulePath, ModulePath>,
}

/// An import of one file by another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The module that imports.
    pub(crate) from: ModulePath,
    /// The module that it imports from.
    pub(crate) to: ModulePath,
    /// One of the paths.
    pub(crate) path: String,
}

/// A file to read, the folder of its children, and its module.
type Open = (PathBuf, PathBuf, ModulePath);

/// The target of a path: a module, or an item in one.
#[derive(Debug)]
enum Target {
    Module(ModulePath),
    Within(ModulePath),
}

impl Modules {
    /// Reads the modules from a crate's root file down. `text` returns the text of a source file.
    pub(crate) fn read(root: &Path, text: impl Fn(&Path) -> anyhow::Result<String>) -> anyhow::Result<Self> {
        let mut modules = Self::default();
        let folder = root.parent().context("a crate's root lies in no folder")?;
        let mut open: Vec<Open> = vec![(root.to_owned(), folder.to_owned(), ModulePath::new())];
        while let Some((file, folder, place)) = open.pop() {
            let tokens = token::read(&text(&file)?).with_context(|| format!("reading {}", file.display()))?;
            modules
                .add(&tokens, &place, (place.clone(), folder), &mut open)
                .with_context(|| format!("reading the modules of {}", file.display()))?;
        }
        Ok(modules)
    }

    fn add(
        &mut self,
        tokens: &[Token],
        file: &ModulePath,
        (place, folder): (ModulePath, PathBuf),
        open: &mut Vec<Open>,
    ) -> anyhow::Result<()> {
        let (scope, children) = Scope::read(tokens)?;
        for (name, body) in children {
            let (below, inner) = (join(&place, &name), folder.join(&name));
            match body {
                Some(body) => self.add(body, file, (below, inner), open)?,
                None => open.push((folder.join(format!("{name}.rs")), inner, below)),
            }
        }
        if self.scopes.insert(place.clone(), scope).is_some() {
            bail!("module {} is declared twice", place.join("::"));
        }
        self.files.insert(place, file.clone());
        Ok(())
    }

    /// Returns the number of modules that have a file.
    pub(crate) fn count(&self) -> usize {
        self.files.values().collect::<BTreeSet<_>>().len()
    }

    /// Returns the imports, one for each pair of modules.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports: BTreeMap<(&ModulePath, &ModulePath), String> = BTreeMap::new();
        for (place, scope) in &self.scopes {
            for path in scope.paths() {
                let Some(Target::Module(target) | Target::Within(target)) = self.target(place, path, 0)
                else {
                    continue;
                };
                let (Some(from), Some(to)) = (self.files.get(place), self.files.get(&target)) else {
                    continue;
                };
                if !from.starts_with(to) && !to.starts_with(from) {
                    imports.entry((from, to)).or_insert_with(|| path.join("::"));
                }
            }
        }
        let import = |((from, to), path): ((&ModulePath, &ModulePath), String)| Import {
            from: from.clone(),
            to: to.clone(),
            path,
        };
        imports.into_iter().map(import).collect()
    }

    /// Returns the target of a path; none outside of the crate.
    fn target(&self, from: &ModulePath, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            _ if depth > MAX_DEPTH => None,
            "crate" => self.descend(ModulePath::new(), rest, depth),
            "self" => self.descend(from.clone(), rest, depth),
            "super" => {
                let above = from.split_last()?.1.to_vec();
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.target(&above, rest, depth),
                    false => self.descend(above, rest, depth),
                }
            }
            name => {
                let found = self.find(from, name, depth).filter(|_| self.scopes.contains_key(from))?;
                self.go_on(found, rest, depth)
            }
        }
    }

    fn go_on(&self, found: Target, rest: &[String], depth: usize) -> Option<Target> {
        match found {
            Target::Module(place) => self.descend(place, rest, depth),
            Target::Within(_) => Some(found),
        }
    }

    /// Returns the target of the rest of a path, from a module.
    fn descend(&self, place: ModulePath, rest: &[String], depth: usize) -> Option<Target> {
        let Some((name, behind)) = rest.split_first() else { return Some(Target::Module(place)) };
        match self.find(&place, name, depth) {
            Some(found) => self.go_on(found, behind, depth),
            // A macro defines the item, or another crate does: it counts as the re-exporting module's own.
            None => Some(Target::Within(place)),
        }
    }

    /// Returns the target of a name in a module; none for names from outside of the crate.
    fn find(&self, place: &ModulePath, name: &str, depth: usize) -> Option<Target> {
        let scope = self.scopes.get(place).filter(|_| depth <= MAX_DEPTH)?;
        let below = join(place, name);
        if self.scopes.contains_key(&below) {
            return Some(Target::Module(below));
        }
        if scope.defines(name) {
            return Some(Target::Within(place.clone()));
        }
        match scope.alias(name) {
            // A `use serde::…` in a module with a child `serde` was resolved above.
            Some(path) if path.first().is_some_and(|first| first != name) => {
                self.target(place, path, depth + 1)
            }
            Some(_) => None,
            None => scope.globs().find_map(|glob| match self.target(place, glob, depth + 1)? {
                Target::Module(target) => self.find(&target, name, depth + 1),
                // All variants of an enum.
                Target::Within(_) => None,
            }),
        }
    }
}

fn join(place: &[String], name: &str) -> ModulePath {
    [place, &[name.to_owned()]].concat()
}

/// Reads a crate from texts, and returns its imports as `from to path`.
fn imports_of(files: &[(&str, &str)]) -> anyhow::Result<Vec<String>> {
    let text = |file: &Path| {
        let found = files.iter().find(|(name, _)| Path::new(name) == file);
        found.map(|(_, text)| (*text).to_owned()).with_context(|| format!("there is no {}", file.display()))
    };
    let imports = Modules::read(Path::new("src/lib.rs"), text)?.imports();
    let told =
        |import: &Import| format!("{} {} {}", import.from.join("::"), import.to.join("::"), import.path);
    Ok(imports.iter().map(told).collect())
}

#[test]
fn imports_stand_in_uses_in_paths_and_in_macro_calls() -> anyhow::Result<()> {
    let a = "
        use std::fmt; //! use crate::comment::X;
        use crate::{b::{self, B as Other}, c};
        fn f(x: crate::d::D) -> &'static str { let r#type = c::inner::g(); assert!(crate::e::h()); \"crate::text::X\" }
        fn g() -> impl Iterator<Item = super::f::F> + use<'_> { fmt::Debug; x.y::<u8>() }
        #[cfg(test)]
        mod tests { use crate::g::G; }
        #[cfg(test)]
        use crate::g::{G, H};
    ";
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f; mod g;"),
        ("src/a.rs", a),
        ("src/b.rs", "pub struct B;"),
        ("src/c.rs", "pub mod inner;"),
        ("src/c/inner.rs", "pub fn g() {}"),
        ("src/d.rs", "pub struct D;"),
        ("src/e.rs", "pub fn h() {}"),
        ("src/f.rs", "pub struct F;"),
        ("src/g.rs", ""),
    ];
    let wanted = [
        "a b crate::b",
        "a c crate::c",
        "a c::inner c::inner::g",
        "a d crate::d::D",
        "a e crate::e::h",
        "a f super::f::F",
    ];
    assert_eq!(imports_of(&files)?, wanted);
    Ok(())
}

#[test]
fn a_reexport_leads_to_the_file_that_defines() -> anyhow::Result<()> {
    let files = [
        ("src/lib.rs", "mod a; mod b; mod c; pub use b::*; pub use c::named as called;"),
        ("src/a.rs", "use crate::{B, Made, called}; fn f() { crate::b::Deep::new() }"),
        ("src/b.rs", "mod below; pub use below::Deep; pub struct B; makes! { /// One.\n Made(u8) }"),
        ("src/b/below.rs", "pub struct Deep;"),
        ("src/c.rs", "pub fn named() {}"),
    ];
    assert_eq!(imports_of(&files)?, ["a b crate::B", "a b::below crate::b::Deep::new", "a c crate::called"]);
    Ok(())
}

#[test]
fn a_module_and_those_below_it_are_one_subject() -> anyhow::Result<()> {
    let files = [
        ("src/lib.rs", "mod a { mod inline { use super::super::b::one::X; } } mod b; use b::B;"),
        ("src/b.rs", "pub mod one; mod two; pub struct B; use one::X;"),
        ("src/b/one.rs", "use super::{B, two}; pub struct X;"),
        ("src/b/two.rs", "fn f() { super::one::g(); }"),
    ];
    assert_eq!(imports_of(&files)?, ["b::one b::two super::two", "b::two b::one super::one::g"]);
    Ok(())
}
