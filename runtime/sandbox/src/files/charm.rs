//! The charm's own files.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use super::tree::{DirectoryId, DiskEntry, Entry, ROOT, Tree};

/// How many files and directories a charm may have: more than any real charm, and a tree of them takes some
/// ten megabytes.
const MAX_ENTRIES: u64 = 50_000;

/// A charm's unpacked files, looked through once per charm and shared by all its hooks. The names are kept;
/// the contents stay on disk.
#[derive(Debug, Clone)]
pub(crate) struct CharmFiles {
    pub(super) tree: Arc<Tree>,
}

impl CharmFiles {
    /// No files at all.
    pub(crate) fn none() -> Self {
        Self { tree: Arc::new(Tree::new(Duration::ZERO)) }
    }

    /// Looks through a directory. What is neither file nor directory (a link above all) is left out.
    pub(crate) fn scan(directory: &Path) -> io::Result<Self> {
        // The same for every unpacking of the same charm: hooks must not see when it was.
        let time = Duration::ZERO;
        let mut tree = Tree::new(time);
        let mut waiting: Vec<(Box<Path>, DirectoryId)> = vec![(directory.into(), ROOT)];
        let mut number = 0;
        while let Some((path, parent)) = waiting.pop() {
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                // A name that is no text cannot be said in WASI.
                let Ok(name) = entry.file_name().into_string() else { continue };
                number += 1;
                if number > MAX_ENTRIES {
                    return Err(io::Error::other(format!("a charm may have {MAX_ENTRIES} files at most")));
                }
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    let id = tree.make_directory(parent, &name, time).map_err(io::Error::other)?;
                    waiting.push((entry.path().into(), id));
                } else if kind.is_file() {
                    let size = entry.metadata()?.len();
                    let file = DiskEntry { path: entry.path().into(), size, number };
                    let file = Entry::Disk(Arc::new(file));
                    tree.insert(parent, &name, file, time).map_err(io::Error::other)?;
                }
            }
        }
        Ok(Self { tree: Arc::new(tree) })
    }
}
