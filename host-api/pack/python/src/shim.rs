//! The package `periapt_ops` and the contract, as they are written to where a component is built.

use std::{fs, io, path::Path};

/// The contract with charms.
const CONTRACT: &str = include_str!("../../../wit/charm.wit");

/// The part of it that a Python charm's component is built with.
const WORLD: &str = include_str!("../wit/python.wit");

macro_rules! sources {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../../sdk/python/", $path)))),*]
    };
}

/// All sources of the package, and the component's own module.
const SOURCES: &[(&str, &str)] = sources![
    "periapt_component.py",
    "periapt_ops/__init__.py",
    "periapt_ops/build.py",
    "periapt_ops/charm.py",
    "periapt_ops/handles.py",
    "periapt_ops/host.py",
    "periapt_ops/imports.py",
    "periapt_ops/location.py",
    "periapt_ops/metadata.py",
    "periapt_ops/packing/__init__.py",
    "periapt_ops/packing/__main__.py",
    "periapt_ops/packing/beyond.py",
    "periapt_ops/packing/bounds.py",
    "periapt_ops/packing/built.py",
    "periapt_ops/packing/check.py",
    "periapt_ops/packing/direct.py",
    "periapt_ops/packing/fetching.py",
    "periapt_ops/packing/git.py",
    "periapt_ops/packing/layout.py",
    "periapt_ops/packing/libraries.py",
    "periapt_ops/packing/lines.py",
    "periapt_ops/packing/locked.py",
    "periapt_ops/packing/locks.py",
    "periapt_ops/packing/markers.py",
    "periapt_ops/packing/metadata.py",
    "periapt_ops/packing/native.py",
    "periapt_ops/packing/native_sources.txt",
    "periapt_ops/packing/pinned.py",
    "periapt_ops/packing/poetry.py",
    "periapt_ops/packing/poetrylock.py",
    "periapt_ops/packing/preferring.py",
    "periapt_ops/packing/projects.py",
    "periapt_ops/packing/refusing.py",
    "periapt_ops/packing/repository.py",
    "periapt_ops/packing/required.py",
    "periapt_ops/packing/requirements.py",
    "periapt_ops/packing/runnable.py",
    "periapt_ops/packing/sources.py",
    "periapt_ops/packing/stdlib.py",
    "periapt_ops/packing/trees.py",
    "periapt_ops/packing/unpacked.py",
    "periapt_ops/packing/upgrading.py",
    "periapt_ops/packing/uvlock.py",
    "periapt_ops/packing/vendor.py",
    "periapt_ops/packing/wanted.py",
    "periapt_ops/packing/wheels.py",
    "periapt_ops/reading.py",
    "periapt_ops/stand_ins/__init__.py",
    "periapt_ops/stand_ins/coder.py",
    "periapt_ops/stand_ins/files.py",
    "periapt_ops/stand_ins/floats.py",
    "periapt_ops/stand_ins/hashing.py",
    "periapt_ops/stand_ins/headers.py",
    "periapt_ops/stand_ins/hosts.py",
    "periapt_ops/stand_ins/interpreters.py",
    "periapt_ops/stand_ins/locks.py",
    "periapt_ops/stand_ins/names.py",
    "periapt_ops/stand_ins/network.py",
    "periapt_ops/stand_ins/processes.py",
    "periapt_ops/stand_ins/sockets.py",
    "periapt_ops/stand_ins/tls.py",
    "periapt_ops/stand_ins/users.py",
    "periapt_ops/stand_ins/xz.py",
    "periapt_ops/storage.py",
    "periapt_ops/tracing.py",
];

/// Writes the package below a directory.
pub(crate) fn write_package(directory: &Path) -> io::Result<()> {
    for (path, source) in SOURCES {
        write(&directory.join(path), source)?;
    }
    Ok(())
}

/// Writes the contract as `componentize-py` reads it.
pub(crate) fn write_wit(directory: &Path) -> io::Result<()> {
    write(&directory.join("python.wit"), WORLD)?;
    write(&directory.join("deps/charm/charm.wit"), CONTRACT)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use super::*;

    fn sources_below(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources_below(&path, found);
            } else if path.extension().is_some_and(|extension| extension != "pyc") {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_source_of_the_package_is_in_the_binary() {
        let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python");
        let mut found = vec![root.join("periapt_component.py")];
        sources_below(&root.join("periapt_ops"), &mut found);
        let found: BTreeSet<_> =
            found.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(found, SOURCES.iter().map(|(path, _)| (*path).to_owned()).collect());
    }
}
