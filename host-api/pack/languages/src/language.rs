//! The programming languages of charms.

use std::{fmt, path::Path};

use crate::CharmBuildError;

/// A language whose charms can be built from their sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// Go.
    Go,
    /// JavaScript or TypeScript.
    JavaScript,
    /// Rust.
    Rust,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 4] = [Self::C, Self::Go, Self::JavaScript, Self::Rust];

    /// Returns the files that mark a charm's language. Any one of them is enough.
    pub fn marks(self) -> &'static [&'static str] {
        match self {
            Self::C => &["src/charm.c"],
            Self::Go => &["go.mod"],
            Self::JavaScript => &["src/charm.ts", "src/charm.js", "src/charm.mjs"],
            Self::Rust => &["Cargo.toml"],
        }
    }

    /// Returns the language of the charm in a directory, by its files, or `None` without sources of a known language.
    ///
    /// # Errors
    /// [`CharmBuildError::SeveralLanguages`] for sources of two.
    pub fn of(directory: &Path) -> Result<Option<Self>, CharmBuildError> {
        let mut found = Vec::new();
        for language in Self::ALL {
            found.extend(language.mark_in(directory).map(|mark| (language, mark)));
        }
        match found.as_slice() {
            [] => Ok(None),
            [(language, _)] => Ok(Some(*language)),
            several => Err(CharmBuildError::SeveralLanguages {
                directory: directory.to_owned(),
                marks: several.iter().map(|(_, mark)| (*mark).to_owned()).collect(),
            }),
        }
    }

    /// Returns the first marking file that a directory has.
    pub(crate) fn mark_in(self, directory: &Path) -> Option<&'static str> {
        self.marks().iter().copied().find(|mark| directory.join(mark).is_file())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Go => "Go",
            Self::JavaScript => "JavaScript",
            Self::Rust => "Rust",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_charm_shows_its_language_by_one_file() {
        for language in Language::ALL {
            for mark in language.marks() {
                let directory = tempfile::tempdir().unwrap();
                assert_eq!(Language::of(directory.path()).unwrap(), None);
                let path = directory.path().join(mark);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
                assert_eq!(Language::of(directory.path()).unwrap(), Some(language), "{mark}");
            }
        }
    }

    #[test]
    fn sources_of_two_languages_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("src")).unwrap();
        fs::write(directory.path().join("src/charm.c"), "").unwrap();
        fs::write(directory.path().join("Cargo.toml"), "").unwrap();
        let error = Language::of(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with(" has sources of several languages: src/charm.c, Cargo.toml"), "{error}");
    }
}
