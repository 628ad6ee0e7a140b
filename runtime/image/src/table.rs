//! Tables of an unpacked layer's entries. They keep what a user without rights cannot write to a disk: owners,
//! set-user-id, devices.

mod merge;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use merge::MergedTable;
pub(crate) use merge::merge;

/// The entries of a layer, or of several layers that lie on each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerTable {
    /// The entries by their path below the root; the root's own path is empty. A parent comes before its children in
    /// [`parents_first`](Self::parents_first).
    pub entries: BTreeMap<String, LayerEntry>,
}

/// One entry of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LayerEntry {
    /// The kind, with what that kind alone has.
    pub kind: EntryKind,
    /// The mode as the image has it, with set-user-id, set-group-id and sticky.
    pub mode: u32,
    /// The owner as the image has it.
    pub uid: u32,
    /// The owning group as the image has it.
    pub gid: u32,
    /// The time of the last change: seconds since 1970, and nanoseconds.
    pub time: (i64, u32),
    /// The names of the extended attributes that the image has. They are not written to the disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<String>,
}

/// The kinds of entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryKind {
    /// A file of this many bytes.
    File {
        /// The bytes of its content, with holes.
        size: u64,
    },
    /// A directory.
    Directory {
        /// The hold on what earlier layers have in it.
        below: Below,
        /// The origin of its mode and owner.
        origin: DirectoryOrigin,
    },
    /// A symbolic link with its text, which may name anything.
    Link {
        /// The text.
        target: String,
    },
    /// Another name of a file or link of the same layer.
    HardLink {
        /// The path of the name that came first.
        of: String,
        /// The bytes of the content.
        size: u64,
    },
    /// A mark that what earlier layers have here is gone.
    Whiteout,
    /// A device or named pipe. It is not on the disk.
    Skipped {
        /// The kind in words.
        what: String,
    },
}

/// The effect of a directory on the same directory of earlier layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Below {
    /// Their content is seen.
    Shown,
    /// Their content is gone.
    Hidden,
}

/// The origin of a directory's mode and owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirectoryOrigin {
    /// The layer has an entry for it.
    Entry,
    /// The layer has an entry below it alone. An earlier layer's mode and owner stay.
    Path,
}

impl LayerEntry {
    /// Returns a directory that only the paths of other entries name: mode 755, of root.
    pub(crate) fn implied() -> Self {
        Self {
            kind: EntryKind::Directory { below: Below::Shown, origin: DirectoryOrigin::Path },
            mode: 0o755,
            uid: 0,
            gid: 0,
            time: (0, 0),
            attributes: Vec::new(),
        }
    }

    /// Returns the mode on the disk. Set-user-id and set-group-id are left out: the file would belong to the user of
    /// this process. Owners can always read files, and use directories.
    pub(crate) fn mode_on_disk(&self) -> u32 {
        match self.kind {
            EntryKind::Directory { .. } => self.mode & 0o1777 | 0o700,
            _ => self.mode & 0o777 | 0o400,
        }
    }

    /// Returns true for a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, EntryKind::Directory { .. })
    }
}

impl LayerTable {
    /// Returns the entries in an order in which each directory comes before what is in it.
    pub fn parents_first(&self) -> Vec<(&str, &LayerEntry)> {
        // `a-b` sorts before `a/b`, so the order of the map is not enough for every use of neighbours, but a path is
        // always greater than its own beginnings.
        self.entries.iter().map(|(path, entry)| (path.as_str(), entry)).collect()
    }

    /// Returns the bytes of all files.
    pub fn content(&self) -> u64 {
        let size = |entry: &LayerEntry| match entry.kind {
            EntryKind::File { size } => size,
            _ => 0,
        };
        self.entries.values().map(size).fold(0, u64::saturating_add)
    }
}

/// Returns the path of the directory that holds an entry. The root has none.
pub(crate) fn parent(path: &str) -> Option<&str> {
    match path.rsplit_once('/') {
        Some((parent, _)) => Some(parent),
        None if path.is_empty() => None,
        None => Some(""),
    }
}

/// Returns the last name of a path.
pub(crate) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
