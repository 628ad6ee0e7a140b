//! Templates of new charms, which pack, pass their tests and become active at once.

use std::{fs, io, path::Path};

use crate::{
    CharmBuildError,
    embedded::{
        self, C_HARNESS, C_SDK, File, GO_SDK, JAVASCRIPT_HARNESS, JAVASCRIPT_SDK, NEW_CHARM, NEW_IN_C,
        NEW_IN_GO, NEW_IN_JAVASCRIPT, NEW_IN_PYTHON, NEW_IN_RUST, RUST_SDK,
    },
};

/// The placeholder of the charm's name.
const NAME: &str = "{name}";

/// A template of a charm, one per language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// A charm with the SDK for C, tested by `make test`.
    C,
    /// A charm with the SDK for Go, tested by `go test`.
    Go,
    /// A charm with the SDK for JavaScript, tested by `npm test`.
    JavaScript,
    /// A charm on the `ops` framework, tested by pytest.
    Python,
    /// A charm with the SDK for Rust, tested by `cargo test`.
    Rust,
}

impl Template {
    /// Returns the charm's own files, and the files of the SDK for its directory `sdk`.
    fn parts(self) -> (&'static [File], [&'static [File]; 2]) {
        match self {
            Self::C => (NEW_IN_C, [C_SDK, C_HARNESS]),
            Self::Go => (NEW_IN_GO, [GO_SDK, &[]]),
            Self::JavaScript => (NEW_IN_JAVASCRIPT, [JAVASCRIPT_SDK, JAVASCRIPT_HARNESS]),
            Self::Python => (NEW_IN_PYTHON, [&[], &[]]),
            Self::Rust => (NEW_IN_RUST, [RUST_SDK, &[]]),
        }
    }

    /// Returns the command that runs the charm's tests.
    pub fn tested_by(self) -> &'static str {
        match self {
            Self::C => "make test",
            Self::Go => "go test",
            Self::JavaScript => "npm install && npm test",
            Self::Python => "pip install -r requirements-dev.txt && pytest",
            Self::Rust => "cargo test",
        }
    }

    /// Creates a charm in a new or empty directory, all files or none. The name must be valid for charms.
    ///
    /// # Errors
    /// [`CharmBuildError::NotEmpty`], or an error of writing.
    pub fn make(self, directory: &Path, name: &str) -> Result<(), CharmBuildError> {
        match fs::read_dir(directory) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(CharmBuildError::NotEmpty { directory: directory.to_owned() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(CharmBuildError::files(directory)(error)),
        }
        let absolute = std::path::absolute(directory).map_err(CharmBuildError::files(directory))?;
        let parent = absolute.parent().unwrap_or(&absolute);
        fs::create_dir_all(parent).map_err(CharmBuildError::files(parent))?;
        let unfinished = tempfile::Builder::new()
            .prefix(".periapt-init-")
            .tempdir_in(parent)
            .map_err(CharmBuildError::files(parent))?;
        self.fill(unfinished.path(), name)?;
        let unfinished = unfinished.keep();
        let moved = fs::rename(&unfinished, &absolute);
        if moved.is_err() {
            // The error below is the one that counts.
            let _ = fs::remove_dir_all(&unfinished);
        }
        moved.map_err(CharmBuildError::files(directory))?;
        open_to_others(&absolute)
    }

    fn fill(self, directory: &Path, name: &str) -> Result<(), CharmBuildError> {
        let (own, sdk) = self.parts();
        for files in sdk {
            embedded::write(&directory.join("sdk"), files)?;
        }
        for (path, content) in NEW_CHARM.iter().chain(own) {
            let text = String::from_utf8_lossy(content).replace(NAME, name);
            let path = directory.join(named(path));
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(CharmBuildError::files(parent))?;
            }
            fs::write(&path, text).map_err(CharmBuildError::files(&path))?;
        }
        Ok(())
    }
}

/// Returns the name of a template's file in a charm.
fn named(path: &str) -> &str {
    match path {
        "gitignore" => ".gitignore",
        path => path.strip_suffix(".in").unwrap_or(path),
    }
}

/// Opens the permissions of a charm's directory: those of a temporary directory are for its owner alone.
fn open_to_others(directory: &Path) -> Result<(), CharmBuildError> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory, permissions).map_err(CharmBuildError::files(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Template; 5] =
        [Template::C, Template::Go, Template::JavaScript, Template::Python, Template::Rust];

    #[test]
    fn a_new_charm_has_its_name_everywhere_and_its_languages_files() {
        for template in ALL {
            let parent = tempfile::tempdir().unwrap();
            let directory = parent.path().join("inner/my-charm");
            template.make(&directory, "my-charm").unwrap();
            let metadata = fs::read_to_string(directory.join("charmcraft.yaml")).unwrap();
            assert!(metadata.starts_with("name: my-charm\n"), "{metadata}");
            let readme = fs::read_to_string(directory.join("README.md")).unwrap();
            assert!(readme.starts_with("# my-charm\n") && !readme.contains(NAME), "{readme}");
            assert!(directory.join(".gitignore").exists() && !directory.join("gitignore").exists());
            assert_eq!(fs::read_dir(parent.path().join("inner")).unwrap().count(), 1, "nothing else is left");
        }
    }

    #[test]
    fn a_directory_with_something_in_it_is_left_alone_and_an_empty_one_is_filled() {
        let directory = tempfile::tempdir().unwrap();
        Template::C.make(directory.path(), "a").unwrap();
        let error = Template::Rust.make(directory.path(), "a").unwrap_err().to_string();
        assert!(error.ends_with(" is not empty"), "{error}");
        assert!(!directory.path().join("Cargo.toml").exists());
    }
}
