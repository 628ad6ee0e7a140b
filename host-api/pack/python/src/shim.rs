//! The embedded sources for packing: the package `periapt_ops` and the contract, which become part of a component, and
//! the package `periapt_packing`, which runs natively.

use std::{fs, io, path::Path};

/// The contract with charms.
const CONTRACT: &str = include_str!("../../../wit/charm.wit");

/// The world of a Python charm's component.
const WORLD: &str = include_str!("../wit/python.wit");

macro_rules! sources {
    ($directory:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!($directory, $path)))),*]
    };
}

/// All sources of `periapt_ops`, and the component's own module.
const SOURCES: &[(&str, &str)] = sources!["../../../sdk/python/":
    "periapt_component.py",
    "periapt_ops/__init__.py",
    "periapt_ops/build.py",
    "periapt_ops/charm.py",
    "periapt_ops/handles.py",
    "periapt_ops/host.py",
    "periapt_ops/imports.py",
    "periapt_ops/location.py",
    "periapt_ops/mains.py",
    "periapt_ops/metadata.py",
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
    "periapt_ops/stand_ins/pipes.py",
    "periapt_ops/stand_ins/pools.py",
    "periapt_ops/stand_ins/processes.py",
    "periapt_ops/stand_ins/resolver.py",
    "periapt_ops/stand_ins/sockets.py",
    "periapt_ops/stand_ins/threads.py",
    "periapt_ops/stand_ins/tls.py",
    "periapt_ops/stand_ins/users.py",
    "periapt_ops/stand_ins/xz.py",
    "periapt_ops/storage.py",
    "periapt_ops/tracing.py",
];

/// All sources of `periapt_packing`.
const PACKING: &[(&str, &str)] = sources!["../":
    "periapt_packing/__init__.py",
    "periapt_packing/__main__.py",
    "periapt_packing/archives.py",
    "periapt_packing/beyond.py",
    "periapt_packing/bounds.py",
    "periapt_packing/built.py",
    "periapt_packing/check.py",
    "periapt_packing/direct.py",
    "periapt_packing/fetching.py",
    "periapt_packing/git.py",
    "periapt_packing/layout.py",
    "periapt_packing/libraries.py",
    "periapt_packing/lines.py",
    "periapt_packing/locked.py",
    "periapt_packing/locks.py",
    "periapt_packing/markers.py",
    "periapt_packing/metadata.py",
    "periapt_packing/native.py",
    "periapt_packing/native_sources.txt",
    "periapt_packing/pinned.py",
    "periapt_packing/poetry.py",
    "periapt_packing/poetrylock.py",
    "periapt_packing/preferring.py",
    "periapt_packing/projects.py",
    "periapt_packing/refusing.py",
    "periapt_packing/repository.py",
    "periapt_packing/required.py",
    "periapt_packing/requirements.py",
    "periapt_packing/resolving.py",
    "periapt_packing/runnable.py",
    "periapt_packing/sdists.py",
    "periapt_packing/sources.py",
    "periapt_packing/stdlib.py",
    "periapt_packing/trees.py",
    "periapt_packing/unpacked.py",
    "periapt_packing/unmet.py",
    "periapt_packing/upgrading.py",
    "periapt_packing/uvlock.py",
    "periapt_packing/vendor.py",
    "periapt_packing/wanted.py",
    "periapt_packing/wheels.py",
    "periapt_packing/workspaces.py",
];

/// Writes `periapt_ops` below a directory.
pub(crate) fn write_package(directory: &Path) -> io::Result<()> {
    write_all(directory, SOURCES)
}

/// Writes `periapt_packing` below a directory. It imports `periapt_ops`.
pub(crate) fn write_packing(directory: &Path) -> io::Result<()> {
    write_all(directory, PACKING)
}

fn write_all(directory: &Path, sources: &[(&str, &str)]) -> io::Result<()> {
    for (path, source) in sources {
        write(&directory.join(path), source)?;
    }
    Ok(())
}

/// Writes the contract in the layout that `componentize-py` reads.
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

    /// Returns the paths of the sources below a directory of this repository.
    fn names(root: &str, parts: &[&str]) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
        let mut found = Vec::new();
        for part in parts.iter().map(|part| root.join(part)) {
            match part.is_dir() {
                true => sources_below(&part, &mut found),
                false => found.push(part),
            }
        }
        found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_source_of_both_packages_is_in_the_binary() {
        let ours = |sources: &[(&str, &str)]| {
            sources.iter().map(|(path, _)| (*path).to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(names("../../sdk/python", &["periapt_component.py", "periapt_ops"]), ours(SOURCES));
        assert_eq!(names(".", &["periapt_packing"]), ours(PACKING));
    }
}
