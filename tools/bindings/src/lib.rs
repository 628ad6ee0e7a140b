//! The generated guest bindings in this repository, made from `host-api/wit`.
//!
//! The SDKs carry their bindings as source files, so that charms build without the generator and its macros, which
//! would take half of a guest's first build. A test of this crate refuses stale files.

mod typescript;

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};

/// One generated file.
#[derive(Debug)]
pub struct Generated {
    /// The path from the repository's root.
    pub path: PathBuf,
    /// The whole content.
    pub content: Vec<u8>,
}

/// Generates all files in memory.
///
/// # Errors
///
/// An error for a WIT file that is missing or invalid.
pub fn generate(root: &Path) -> Result<Vec<Generated>> {
    let mut all = rust(root)?;
    all.extend(c(root)?);
    all.push(typescript(root)?);
    Ok(all)
}

/// Generates the SDK's bindings of the whole world.
fn rust(root: &Path) -> Result<Vec<Generated>> {
    let (mut resolve, package) = contract(root)?;
    let world = resolve.select_world(&[package], Some("charm"))?;
    let mut generator = wit_bindgen_rust::Opts {
        format: true,
        generate_all: true,
        pub_export_macro: true,
        export_macro_name: Some("export_bindings".to_owned()),
        default_bindings_module: Some("periapt_sdk::bindings".to_owned()),
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        ..Default::default()
    }
    .build();
    let files = run(&mut generator, &mut resolve, world)?;
    Ok(placed(files, |_| PathBuf::from("host-api/sdk/rust/src/bindings.rs")))
}

/// Generates the bindings of the SDK for C.
fn c(root: &Path) -> Result<Vec<Generated>> {
    let (mut resolve, package) = contract(root)?;
    let world = resolve.select_world(&[package], Some("charm"))?;
    let mut generator = wit_bindgen_c::Opts::default().build();
    let files = run(generator.as_mut(), &mut resolve, world)?;
    Ok(placed(files, |name| Path::new("host-api/sdk/c/bindings").join(name)))
}

/// Generates the declarations against which the SDK for JavaScript is checked.
fn typescript(root: &Path) -> Result<Generated> {
    let (resolve, package) = contract(root)?;
    let world = resolve.select_world(&[package], Some("charm"))?;
    let content = typescript::declarations(&resolve, world)?.into_bytes();
    Ok(Generated { path: PathBuf::from("host-api/sdk/js/types/contract.d.ts"), content })
}

fn contract(root: &Path) -> Result<(Resolve, wit_bindgen_core::wit_parser::PackageId)> {
    let mut resolve = Resolve::default();
    let directory = root.join("host-api/wit");
    let (package, _) =
        resolve.push_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
    Ok((resolve, package))
}

fn run(generator: &mut dyn WorldGenerator, resolve: &mut Resolve, world: WorldId) -> Result<Files> {
    let mut files = Files::default();
    generator.generate(resolve, world, &mut files)?;
    Ok(files)
}

fn placed(files: Files, path: impl Fn(&str) -> PathBuf) -> Vec<Generated> {
    files.iter().map(|(name, content)| Generated { path: path(name), content: content.to_vec() }).collect()
}
