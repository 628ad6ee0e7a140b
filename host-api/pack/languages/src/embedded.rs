//! Files of this repository that the binary embeds for building charms.

use std::{fs, path::Path};

use crate::CharmBuildError;

/// A file: its path below a directory, and its content.
pub(crate) type File = (&'static str, &'static [u8]);

/// The contract with charms.
pub(crate) const CONTRACT: &str = include_str!("../../../wit/charm.wit");

/// Writes files below a directory.
pub(crate) fn write(directory: &Path, files: &[File]) -> Result<(), CharmBuildError> {
    for (name, content) in files {
        let path = directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(CharmBuildError::files(parent))?;
        }
        fs::write(&path, content).map_err(CharmBuildError::files(&path))?;
    }
    Ok(())
}

/// Embeds files of a directory of this repository, by their paths in it.
macro_rules! files {
    ($directory:literal: $($name:literal)*) => {
        &[$(($name, include_bytes!(concat!($directory, $name)))),*]
    };
}

/// The SDK for JavaScript, for charms that have not installed one.
pub(crate) const JAVASCRIPT_SDK: &[File] = files!("../../../sdk/js/":
    "package.json"
    "src/action.js"
    "src/bag.js"
    "src/charm.js"
    "src/error.js"
    "src/event.js"
    "src/files.js"
    "src/form.js"
    "src/host/component.js"
    "src/host/files.js"
    "src/host/globals.js"
    "src/http.js"
    "src/incoming.js"
    "src/index.js"
    "src/log.js"
    "src/pebble.js"
    "src/ports.js"
    "src/relation.js"
    "src/secret.js"
    "src/stack.js"
    "src/state.js"
    "src/status.js"
    "src/tools.js"
    "src/unit.js"
    "src/utf8.js"
    "src/websocket.js"
    "src/workload.js"
);

/// The SDK for C.
pub(crate) const C_SDK: &[File] = files!("../../../sdk/c/":
    "bindings/charm.c"
    "bindings/charm.h"
    "bindings/charm_component_type.o"
    "include/periapt.h"
    "src/action.c"
    "src/bytes.c"
    "src/exec.c"
    "src/failure.c"
    "src/files.c"
    "src/handle.c"
    "src/http.c"
    "src/internal.h"
    "src/json.c"
    "src/pebble.c"
    "src/ports.c"
    "src/relation.c"
    "src/secret.c"
    "src/text.c"
    "src/tools.c"
    "src/unit.c"
);

/// The test harness for charms in C, beside the SDK.
pub(crate) const C_HARNESS: &[File] = files!("../../../sdk/c/":
    "testing/host.c"
    "testing/host.h"
    "testing/host_action.c"
    "testing/host_pebble.c"
    "testing/host_possible.c"
    "testing/host_relation.c"
    "testing/host_streams.c"
    "testing/periapt_test.c"
    "testing/periapt_test.h"
    "testing/periapt_test_workloads.c"
);

/// The SDK for Go, with its test harness.
pub(crate) const GO_SDK: &[File] = files!("../../../sdk/go/":
    "README.md"
    "action.go"
    "charm.go"
    "component.go"
    "config.go"
    "container.go"
    "doc.go"
    "error.go"
    "event.go"
    "exec.go"
    "files.go"
    "go.mod"
    "http.go"
    "internal/component/event.go"
    "internal/component/handle.go"
    "internal/component/host.go"
    "internal/component/imports.go"
    "internal/component/lower.go"
    "internal/component/memory.go"
    "internal/component/workloads.go"
    "internal/contract/error.go"
    "internal/contract/event.go"
    "internal/contract/host.go"
    "internal/contract/ports.go"
    "periapttest/container.go"
    "periapttest/declared.go"
    "periapttest/hooks.go"
    "periapttest/host.go"
    "periapttest/pebble.go"
    "periapttest/ports.go"
    "periapttest/possible.go"
    "periapttest/relations.go"
    "periapttest/secret_calls.go"
    "periapttest/secrets.go"
    "periapttest/streams.go"
    "periapttest/unit.go"
    "ports.go"
    "relation.go"
    "secret.go"
    "state.go"
    "stream.go"
    "unit.go"
    "websocket.go"
);

/// The test harness and types for charms in JavaScript, beside the SDK.
pub(crate) const JAVASCRIPT_HARNESS: &[File] = files!("../../../sdk/js/":
    "README.md"
    "src/host/memory.js"
    "src/testing.js"
    "src/testing/answers.js"
    "src/testing/container.js"
    "src/testing/declared.js"
    "src/testing/events.js"
    "src/testing/harness.js"
    "src/testing/possible.js"
    "src/testing/relations.js"
    "src/testing/secrets.js"
    "src/testing/state.js"
    "src/testing/streams.js"
    "types/contract.d.ts"
    "types/filesystem.d.ts"
    "types/index.d.ts"
    "types/random.d.ts"
    "types/testing.d.ts"
);

/// The SDK for Rust.
pub(crate) const RUST_SDK: &[File] = files!("../../../sdk/rust/":
    "README.md"
    "src/action.rs"
    "src/bag.rs"
    "src/bindings.rs"
    "src/charm.rs"
    "src/config.rs"
    "src/error.rs"
    "src/event.rs"
    "src/export.rs"
    "src/http.rs"
    "src/incoming.rs"
    "src/later.rs"
    "src/lib.rs"
    "src/log.rs"
    "src/pebble.rs"
    "src/pebble/answer.rs"
    "src/pebble/commands.rs"
    "src/pebble/error.rs"
    "src/pebble/files.rs"
    "src/pebble/told.rs"
    "src/ports.rs"
    "src/relation.rs"
    "src/resource.rs"
    "src/secret.rs"
    "src/state.rs"
    "src/status.rs"
    "src/storage.rs"
    "src/testing.rs"
    "src/testing/batch.rs"
    "src/testing/container.rs"
    "src/testing/declared.rs"
    "src/testing/harness.rs"
    "src/testing/imports.rs"
    "src/testing/later.rs"
    "src/testing/pebble.rs"
    "src/testing/possible.rs"
    "src/testing/secrets.rs"
    "src/testing/state.rs"
    "src/testing/streams.rs"
    "src/tools.rs"
    "src/unit.rs"
    "src/websocket.rs"
    "src/workload.rs"
);

/// The files of a new charm in every language.
pub(crate) const NEW_CHARM: &[File] = files!("../templates/": "charmcraft.yaml");

/// The files of a new charm in one language. (Files with a meaning in this repository have other names here.)
pub(crate) const NEW_IN_C: &[File] =
    files!("../templates/c/": "Makefile" "README.md" "gitignore" "src/charm.c" "tests/charm_test.c");
pub(crate) const NEW_IN_GO: &[File] =
    files!("../templates/go/": "README.md" "charm.go" "charm_test.go" "gitignore" "go.mod.in");
pub(crate) const NEW_IN_JAVASCRIPT: &[File] = files!("../templates/javascript/": "README.md" "gitignore" "package.json" "src/charm.js" "test/charm.test.js");
pub(crate) const NEW_IN_PYTHON: &[File] = files!("../templates/python/":
    "README.md"
    "gitignore"
    "pyproject.toml"
    "requirements-dev.txt"
    "requirements.txt"
    "src/charm.py"
    "tests/unit/test_charm.py"
);
pub(crate) const NEW_IN_RUST: &[File] = files!("../templates/rust/": "Cargo.toml.in" "README.md" "gitignore" "sdk/Cargo.toml.in" "src/lib.rs" "src/tests.rs");

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all files below a directory of this repository, by their paths in it, without a few directories.
    fn below(directory: &str, without: &[&str]) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
        let (mut files, mut open) = (Vec::new(), vec![root.clone()]);
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                match path.is_dir() {
                    true if without.contains(&name.as_str()) => {}
                    true => open.push(path),
                    false => files.push(name),
                }
            }
        }
        files.retain(|name| !without.contains(&name.as_str()));
        files.sort();
        files
    }

    fn names(parts: &[&[File]]) -> Vec<String> {
        let mut names: Vec<_> =
            parts.iter().flat_map(|files| files.iter()).map(|(name, _)| (*name).to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn no_file_of_an_sdk_is_forgotten() {
        let c = below("../../sdk/c", &[".gitattributes", "README.md", "tests"]);
        assert_eq!(names(&[C_SDK, C_HARNESS]), c);
        let not_shipped = ["dev", "test", "tsconfig.json", "tsconfig.sources.json"];
        assert_eq!(names(&[JAVASCRIPT_SDK, JAVASCRIPT_HARNESS]), below("../../sdk/js", &not_shipped));
        let mut go = below("../../sdk/go", &[]);
        go.retain(|name| !name.ends_with("_test.go"));
        assert_eq!(names(&[GO_SDK]), go);
        assert_eq!(names(&[RUST_SDK]), below("../../sdk/rust", &[".gitattributes", "Cargo.toml", "tests"]));
    }

    #[test]
    fn the_sdk_for_javascript_depends_on_no_package() {
        // npm also installs the development dependencies of a package in a directory: each new charm would fetch
        // them.
        let (_, manifest) = JAVASCRIPT_SDK.iter().find(|(name, _)| *name == "package.json").unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
        for field in ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"] {
            assert!(manifest.get(field).is_none(), "{field} in {manifest}");
        }
    }

    #[test]
    fn the_sdk_of_a_new_charm_in_rust_has_the_dependencies_of_ours() {
        let ours = include_str!("../../../sdk/rust/Cargo.toml");
        let (_, theirs) =
            include_str!("../templates/rust/sdk/Cargo.toml.in").split_once("[dependencies]").unwrap();
        assert!(ours.contains(theirs.trim()), "{theirs}");
    }
}
