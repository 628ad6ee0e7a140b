//! Charms of this repository as archives.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().with_context(|| format!("the repository's root, {}", root.display()))
}

/// Packs `charms/NAME` with the module that `tools/guest` built of it, into a directory.
pub fn packed(name: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let root = root()?;
    let guests = env::var_os("PERIAPT_GUESTS").map_or_else(|| root.join("target/guests"), PathBuf::from);
    let module = guests.join(format!("{}.wasm", name.replace('-', "_")));
    if !module.exists() {
        bail!("{} is not built: run tools/guest", module.display());
    }
    let packed = periapt_archive::pack(&root.join("charms").join(name), &module)
        .with_context(|| format!("packing {name}"))?;
    let archive = directory.join(format!("{name}.charm"));
    fs::write(&archive, packed.bytes).with_context(|| format!("writing {}", archive.display()))?;
    Ok(archive)
}
