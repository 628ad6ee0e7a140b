//! What whoever packs decides, and not the charm.

use std::path::{Path, PathBuf};

/// What whoever packs has said of the charm's dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// Packages that are taken in the newest version that the project allows, and not in the one that it has locked.
    pub upgrades: Vec<String>,
    /// Whether sources are fetched from repositories.
    pub repositories: Repositories,
}

/// What becomes of a dependency whose source is a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Repositories {
    /// Nothing is packed.
    #[default]
    Refused,
    /// Its pinned commit is fetched by git, and nothing of it is run.
    Fetched,
}

/// The directory around a charm that its links and paths may lead to: the checkout that it lies in, or else the workspace of
/// uv, or else its own directory.
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
