//! Files of this repository that a charm's build needs, wherever the binary is.

use std::{fs, path::Path};

use crate::BuildError;

/// A file by its path below a directory, and its content.
pub(crate) type File = (&'static str, &'static [u8]);

/// The contract with charms.
pub(crate) const CONTRACT: &str = include_str!("../../wit/charm.wit");

/// Writes files below a directory.
pub(crate) fn write(directory: &Path, files: &[File]) -> Result<(), BuildError> {
    for (name, content) in files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(BuildError::files(parent))?;
        }
        fs::write(&path, content).map_err(BuildError::files(&path))?;
    }
    Ok(())
}

/// The files of a directory of this repository, by their paths in it.
macro_rules! files {
    ($directory:literal: $($name:literal)*) => {
        &[$(($name, include_bytes!(concat!($directory, $name)))),*]
    };
}

/// The SDK for JavaScript, for charms that have none of their own installed.
pub(crate) const JAVASCRIPT_SDK: &[File] = files!("../../js/":
    "package.json"
    "src/action.js"
    "src/bag.js"
    "src/charm.js"
    "src/error.js"
    "src/event.js"
    "src/host/component.js"
    "src/host/globals.js"
    "src/index.js"
    "src/log.js"
    "src/ports.js"
    "src/relation.js"
    "src/secret.js"
    "src/stack.js"
    "src/state.js"
    "src/status.js"
    "src/tools.js"
    "src/unit.js"
    "src/utf8.js"
);
