//! From a charm's sources to its code.
//!
//! [`Language::of`] says by its files which language a charm is written in, and [`build`] makes its WebAssembly with that
//! language's own tools. What has to be fetched lies in a [`Workshop`]: a cache that is filled once, whole or not at all.
//! [`Template`] makes a new charm. Nothing here knows archives; `periapt-archive` packs what comes out.

mod c;
mod command;
mod embedded;
mod error;
mod go;
mod javascript;
mod language;
mod rust;
mod template;
mod workshop;

use std::{collections::BTreeMap, path::Path};

pub use error::BuildError;
pub use language::Language;
pub use template::Template;
pub use workshop::{Workshop, cache_directory};

/// What was made of a charm's sources.
#[derive(Debug, Clone, Default)]
pub struct Built {
    /// A component, or a core module of WASI preview 1.
    pub wasm: Vec<u8>,
    /// Files that go into the archive beside those of the charm's directory, by their paths in it.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Builds the charm in a directory.
///
/// # Errors
/// [`BuildError`] says which tool is missing, or what the tool said.
pub fn build(directory: &Path, language: Language, workshop: &Workshop) -> Result<Built, BuildError> {
    match language {
        Language::C => c::build(directory, workshop),
        Language::Go => go::build(directory, workshop),
        Language::JavaScript => javascript::build(directory, workshop),
        Language::Rust => rust::build(directory, workshop),
    }
}
