//! The repository's sources, as text.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// One source file.
pub(crate) struct Source {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The whole text.
    pub(crate) text: String,
}

impl Source {
    /// Returns the file without comments and without the test module at its end. Line numbers stay.
    pub(crate) fn code(&self) -> Self {
        let mut text = String::new();
        for line in self.text.lines() {
            if line == "#[cfg(test)]" {
                break;
            }
            text.push_str(line.split_once("//").map_or(line, |(code, _)| code));
            text.push('\n');
        }
        Self { path: self.path.clone(), text }
    }

    /// Returns each line that contains one of the words, as `path:line: word`.
    pub(crate) fn lines_with(&self, words: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for (number, line) in (1..).zip(self.text.lines()) {
            for word in words.iter().filter(|word| line.contains(**word)) {
                found.push(format!("{}:{number}: {word}", self.path.display()));
            }
        }
        found
    }
}

/// Returns every `.rs` file under a directory, sorted, without build directories.
pub(crate) fn rust(directory: &Path) -> anyhow::Result<Vec<Source>> {
    with_extensions(directory, &["rs"])
}

/// Returns every file with one of the extensions under a directory, sorted, without build directories and packages of
/// other projects.
pub(crate) fn with_extensions(directory: &Path, extensions: &[&str]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in next.read_dir().with_context(|| format!("reading {}", next.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let name = name.to_string_lossy();
                if name != "target" && name != "node_modules" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if kind.is_file()
                && path.extension().is_some_and(|it| extensions.iter().any(|extension| it == *extension))
            {
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                sources.push(Source { path, text });
            }
        }
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(sources)
}
