//! The rule for names in an archive: valid names can be unpacked below any directory, each to a path of its own.

use std::collections::BTreeSet;

use super::MAX_ENTRIES;

/// The longest path, in bytes: file systems take 4,095, with the target directory.
const MAX_PATH: usize = 512;

/// The longest part of a path between two `/`, in bytes: the limit of Linux file systems.
const MAX_PART: usize = 255;

/// The names of the archive's entries so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    files: BTreeSet<String>,
    /// All directories, including those that only a file's path names.
    directories: BTreeSet<String>,
    /// Directories with an entry of their own.
    listed: BTreeSet<String>,
}

impl Names {
    /// Adds the name of an entry. A name that ends with `/` is a directory's. The error says which rule the name
    /// breaks.
    pub(super) fn add(&mut self, name: &str) -> Result<(), &'static str> {
        let directory = name.strip_suffix('/');
        let path = directory.unwrap_or(name);
        check(path)?;
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default();
            if self.files.contains(parent) {
                return Err("it lies below a file of the archive");
            }
            self.add_directory(parent)?;
        }
        if self.files.contains(path) || self.listed.contains(path) {
            return Err("the archive has two entries of this name");
        }
        if directory.is_some() {
            self.listed.insert(path.to_owned());
            return self.add_directory(path);
        }
        if self.directories.contains(path) {
            return Err("it is a file, and other entries lie below it");
        }
        self.files.insert(path.to_owned());
        self.count()
    }

    /// Counts the directories that unpacking makes.
    pub(super) fn directories(&self) -> usize {
        self.directories.len()
    }

    fn add_directory(&mut self, path: &str) -> Result<(), &'static str> {
        if !self.directories.contains(path) {
            self.directories.insert(path.to_owned());
        }
        self.count()
    }

    /// Checks the number of files and directories. One entry may name 255 directories, so a bound on entries is not
    /// enough.
    fn count(&self) -> Result<(), &'static str> {
        match self.files.len() + self.directories.len() > MAX_ENTRIES {
            true => Err("the archive has more than 10000 files and directories"),
            false => Ok(()),
        }
    }
}

/// Checks that a path is relative, never leads out, and is valid in every Linux file system.
fn check(path: &str) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("it has no name");
    }
    if path.len() > MAX_PATH {
        return Err("its path is longer than 512 bytes");
    }
    if path.starts_with('/') || path.contains(['\\', ':']) || path.chars().any(char::is_control) {
        return Err("its path is not a plain relative path");
    }
    for part in path.split('/') {
        match part {
            "" => return Err("its path has an empty part"),
            "." | ".." => return Err("its path leads out of the archive"),
            part if part.len() > MAX_PART => return Err("a part of its path is longer than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(names: &[&str]) -> &'static str {
        let mut seen = Names::default();
        let (last, before) = names.split_last().unwrap();
        for name in before {
            seen.add(name).unwrap();
        }
        seen.add(last).unwrap_err()
    }

    #[test]
    fn names_that_lead_elsewhere_or_that_no_file_system_takes_are_refused() {
        for name in ["../a", "a/../../b", "./a", "a/.", "a/.."] {
            assert_eq!(refused(&[name]), "its path leads out of the archive", "{name:?}");
        }
        for name in ["/a", "a\\b", "c:a", "a\nb", "a\0b", "a\u{7f}", "a\u{9b}b"] {
            assert_eq!(refused(&[name]), "its path is not a plain relative path", "{name:?}");
        }
        for name in ["a//b", "a//"] {
            assert_eq!(refused(&[name]), "its path has an empty part", "{name:?}");
        }
        assert_eq!(refused(&[""]), "it has no name");
        assert_eq!(refused(&["/"]), "it has no name");
        assert_eq!(refused(&[&"n".repeat(256)]), "a part of its path is longer than 255 bytes");
        assert_eq!(
            refused(&[&format!("a/{}/b", "ä".repeat(128))]),
            "a part of its path is longer than 255 bytes"
        );
        assert_eq!(refused(&[&"a/".repeat(257)]), "its path is longer than 512 bytes");
    }

    #[test]
    fn two_entries_of_one_place_are_refused() {
        const TWICE: &str = "the archive has two entries of this name";
        assert_eq!(refused(&["a", "a"]), TWICE);
        assert_eq!(refused(&["a/", "a/"]), TWICE);
        assert_eq!(refused(&["a", "a/"]), TWICE);
        assert_eq!(refused(&["a/", "a"]), TWICE);
        assert_eq!(refused(&["a/b", "a"]), "it is a file, and other entries lie below it");
        assert_eq!(refused(&["a", "a/b"]), "it lies below a file of the archive");
        assert_eq!(refused(&["a", "a/b/"]), "it lies below a file of the archive");
    }

    #[test]
    fn names_that_differ_are_as_many_files() {
        let mut names = Names::default();
        // Names that differ in case, or in Unicode's normal form: Linux tells them apart.
        for name in ["a/b", "a/", "A/b", "a/c/d", "\u{e4}", "a\u{308}", &"n".repeat(255), "...", "..a"] {
            names.add(name).unwrap();
        }
        assert_eq!(names.directories(), 3);
    }

    #[test]
    fn directories_that_only_paths_name_are_counted() {
        let mut names = Names::default();
        let refused =
            (0..MAX_ENTRIES).find_map(|number| names.add(&format!("{number}/{}f", "a/".repeat(200))).err());
        assert_eq!(refused, Some("the archive has more than 10000 files and directories"));
        assert!(names.directories() <= MAX_ENTRIES + 1);
    }
}
