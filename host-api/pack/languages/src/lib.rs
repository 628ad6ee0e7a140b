//! Builders of charms from their sources.
//!
//! [`Language::of`] detects a charm's language by its files, and [`build`] makes its WebAssembly with that language's
//! own tools. Tools that must be fetched are in a [`BuildEnvironment`], a cache with all-or-nothing entries. [`Template`]
//! creates a new charm. This crate knows no archives; `periapt-archive` packs its results.

mod build_environment;
mod c;
mod command;
mod embedded;
mod error;
mod go;
mod javascript;
mod language;
mod rust;
mod template;

use std::{collections::BTreeMap, path::Path};

pub use build_environment::{BuildEnvironment, cache_directory};
pub use error::CharmBuildError;
pub use language::Language;
pub use template::Template;

/// The result of building a charm.
#[derive(Debug, Clone, Default)]
pub struct Built {
    /// A component, or a core module of WASI preview 1.
    pub wasm: Vec<u8>,
    /// Files for the archive, beside those of the charm's directory, by their paths in it.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Builds the charm in a directory.
///
/// # Errors
/// [`CharmBuildError`] names the missing tool, or holds the tool's output.
pub fn build(
    directory: &Path,
    language: Language,
    environment: &BuildEnvironment,
) -> Result<Built, CharmBuildError> {
    match language {
        Language::C => c::build(directory, environment),
        Language::Go => go::build(directory, environment),
        Language::JavaScript => javascript::build(directory, environment),
        Language::Rust => rust::build(directory, environment),
    }
}
