//! The storage `data`: one file for each backup, `ID.SOURCE.json`.

use crate::snapshot::Snapshot;
use periapt_sdk::{Context, Result, Unit};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// The name of a file during its writing.
const PARTIAL: &str = "partial";

pub(crate) struct Directory(PathBuf);

/// A backup, as its file name describes it. Sorts by age, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) source: String,
}

impl Entry {
    fn parse(name: &str) -> Option<Self> {
        let (id, source) = name.strip_suffix(".json")?.split_once('.')?;
        Some(Self { id: id.parse().ok()?, source: source.to_owned() })
    }

    fn file(&self) -> String {
        format!("{}.{}.json", self.id, self.source)
    }
}

impl Directory {
    /// Returns the unit's storage, if it is attached.
    pub(crate) fn of(unit: &Unit) -> Option<Self> {
        unit.storage("data").into_iter().next().map(|storage| Self(storage.location().to_owned()))
    }

    /// Returns all backups, the newest last.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.0).context("reading the storage")? {
            let name = file.context("reading the storage")?.file_name();
            entries.extend(name.to_str().and_then(Entry::parse));
        }
        entries.sort();
        Ok(entries)
    }

    /// Reads a backup.
    ///
    /// # Errors
    ///
    /// When the file does not exist or is damaged.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Snapshot> {
        let what = format!("backup {}", entry.id);
        let text = fs::read_to_string(self.0.join(entry.file())).context(&what)?;
        Snapshot::from_text(&text).context(what)
    }

    /// Writes a backup, whole or not at all, and returns its size in bytes.
    pub(crate) fn write(&self, snapshot: &Snapshot) -> Result<usize> {
        let text = snapshot.to_text();
        let partial = self.0.join(PARTIAL);
        let written = File::create(&partial).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            // A file with its final name must survive a power cut.
            file.sync_all()
        });
        let entry = Entry { id: snapshot.id, source: snapshot.source.clone() };
        let ended = written.and_then(|()| fs::rename(&partial, self.0.join(entry.file())));
        if ended.is_err() {
            // This frees the space for the next backup. The first error is the one that counts.
            let _ = fs::remove_file(&partial);
        }
        ended.context(format!("writing backup {}", snapshot.id))?;
        Ok(text.len())
    }

    /// Removes a backup, if it exists.
    pub(crate) fn remove(&self, entry: &Entry) -> Result {
        match fs::remove_file(self.0.join(entry.file())) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).context(format!("removing backup {}", entry.id))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the oldest backups, so that the given number of each source stays.
pub(crate) fn superfluous(entries: &[Entry], keep: usize) -> Vec<Entry> {
    let newer = |entry: &Entry| {
        entries.iter().filter(|other| other.source == entry.source && other.id > entry.id).count()
    };
    entries.iter().filter(|entry| newer(entry) >= keep).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, source: &str) -> Entry {
        Entry { id, source: source.to_owned() }
    }

    #[test]
    fn names_of_files_are_read_back() {
        assert_eq!(Entry::parse(&entry(12, "my-blog").file()), Some(entry(12, "my-blog")));
        for other in ["partial", "12.json", "x.blog.json", "lost+found"] {
            assert_eq!(Entry::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_newest_of_each_source_stay() {
        let entries = [entry(1, "a"), entry(2, "b"), entry(3, "a"), entry(10, "a")];
        assert_eq!(superfluous(&entries, 1), [entry(1, "a"), entry(3, "a")]);
        assert_eq!(superfluous(&entries, 0), entries);
        assert_eq!(superfluous(&entries, 3), []);
    }
}
