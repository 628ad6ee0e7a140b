//! The archives of this repository's charms.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().with_context(|| format!("the repository's root, {}", root.display()))
}

/// Returns a distinct archive with the same content: it ends with a comment of one byte.
pub fn edition(archive: &[u8], number: u8) -> Vec<u8> {
    // The last two bytes are the length of the comment.
    let rest = archive.strip_suffix(&[0, 0]).unwrap_or(archive);
    [rest, &[1, 0, number]].concat()
}

/// Packs `charms/NAME` with a comment in its metadata, into an archive with a digest of its own.
pub fn packed_edition(name: &str, edition: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    packed_changed(name, edition, directory, |text| format!("# {edition}\n{text}"))
}

/// Packs `charms/NAME` with changed metadata.
pub fn packed_changed(
    name: &str,
    edition: &str,
    directory: &Path,
    change: impl FnOnce(&str) -> String,
) -> anyhow::Result<PathBuf> {
    packed_parts(name, edition, directory, &[], change)
}

/// Packs `charms/NAME` with changed metadata, and with the components of workloads: their paths in the charm, and the names
/// of the guests that `tools/guest` built.
pub fn packed_parts(
    name: &str,
    edition: &str,
    directory: &Path,
    parts: &[(&str, &str)],
    change: impl FnOnce(&str) -> String,
) -> anyhow::Result<PathBuf> {
    let copy = directory.join(format!("{name}-{edition}"));
    fs::create_dir(&copy).with_context(|| format!("making {}", copy.display()))?;
    let metadata = root()?.join("charms").join(name).join("charmcraft.yaml");
    let text = fs::read_to_string(&metadata).with_context(|| format!("reading {}", metadata.display()))?;
    fs::write(copy.join("charmcraft.yaml"), change(&text))?;
    for (path, guest) in parts {
        fs::copy(module(guest)?, copy.join(path))?;
    }
    write(&copy, &module(name)?, &directory.join(format!("{name}-{edition}.charm")))
}

/// Packs `charms/NAME` with the module that `tools/guest` built, into a directory. For a charm in Python, from
/// `charms` or `tests/guests`, it copies the archive that `tools/python` built.
pub fn packed(name: &str, directory: &Path) -> anyhow::Result<PathBuf> {
    let root = root()?;
    if ["charms", "tests/guests"]
        .iter()
        .any(|place| root.join(place).join(name).join("src/charm.py").exists())
    {
        let (made, archive) =
            (guests()?.join(format!("{name}.charm")), directory.join(format!("{name}.charm")));
        fs::copy(&made, &archive)
            .with_context(|| format!("{}: not packed yet? run tools/python pack", made.display()))?;
        return Ok(archive);
    }
    write(&root.join("charms").join(name), &module(name)?, &directory.join(format!("{name}.charm")))
}

/// Returns the path of the module that `tools/guest` built from `charms/NAME`.
pub fn module(name: &str) -> anyhow::Result<PathBuf> {
    let module = guests()?.join(format!("{}.wasm", name.replace('-', "_")));
    if !module.exists() {
        bail!("{} is not built: run tools/guest", module.display());
    }
    Ok(module)
}

fn guests() -> anyhow::Result<PathBuf> {
    match env::var_os("PERIAPT_GUESTS") {
        Some(guests) => Ok(PathBuf::from(guests)),
        None => Ok(root()?.join("target/guests")),
    }
}

fn write(charm: &Path, module: &Path, archive: &Path) -> anyhow::Result<PathBuf> {
    let packed =
        periapt_archive::pack(charm, module).with_context(|| format!("packing {}", charm.display()))?;
    fs::write(archive, packed.bytes).with_context(|| format!("writing {}", archive.display()))?;
    Ok(archive.to_owned())
}
