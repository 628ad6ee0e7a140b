//! The operator's choices for packing.

use std::path::{Path, PathBuf};

/// The operator's choices about a charm's dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DependencyOptions {
    /// Packages to take in the newest version that the project allows, and not in the locked one.
    pub upgrades: Vec<String>,
    /// The treatment of dependencies from source repositories.
    pub repositories: Repositories,
}

/// The treatment of a dependency whose source is a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repositories {
    /// Packing fails.
    #[default]
    Refused,
    /// git fetches the pinned commit. Packing runs none of its code.
    Fetched,
}

/// Returns the directory that a charm's links and paths must not leave: the checkout around the charm, or else its uv
/// workspace, or else its own directory.
pub(crate) fn repository_of(charm: &Path) -> PathBuf {
    let is_workspace = |directory: &&Path| {
        let text = std::fs::read_to_string(directory.join("pyproject.toml")).unwrap_or_default();
        text.lines().any(|line| line.trim() == "[tool.uv.workspace]")
    };
    let checkout = charm.ancestors().find(|directory| directory.join(".git").exists());
    checkout.or_else(|| charm.ancestors().find(is_workspace)).unwrap_or(charm).to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_charms_repository_is_the_checkout_around_it_or_the_workspace_or_itself() {
        let place = tempfile::tempdir().unwrap();
        let charm = place.path().join("charms/one");
        fs::create_dir_all(&charm).unwrap();
        assert_eq!(repository_of(&charm), charm);
        fs::write(place.path().join("charms/pyproject.toml"), "[tool.uv.workspace]\nmembers = ['*']\n")
            .unwrap();
        assert_eq!(repository_of(&charm), place.path().join("charms"));
        fs::create_dir(place.path().join(".git")).unwrap();
        assert_eq!(repository_of(&charm), place.path());
    }
}
