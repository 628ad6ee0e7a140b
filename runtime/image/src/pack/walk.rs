//! The files of a directory, in order.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::Path,
};

use super::ImagePackError;
use crate::{
    limits::ImageLimits,
    tar::{is_link_target, relative},
};

/// The content of a directory.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// The files, directories and links by their path below the directory.
    pub(super) entries: BTreeMap<String, Found>,
    /// The paths of devices, pipes and sockets.
    pub(super) skipped: Vec<String>,
}

/// A file of a directory.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) mode: u32,
    pub(super) kind: FoundKind,
}

/// The kind of a file.
#[derive(Debug)]
pub(super) enum FoundKind {
    Directory,
    File {
        size: u64,
    },
    Link(String),
    /// Another name of a file that comes before it.
    HardLink(String),
}

pub(super) fn walk(directory: &Path, limits: &ImageLimits) -> Result<Walked, ImagePackError> {
    let mut walked = Walked::default();
    let mut open = vec![String::new()];
    let mut several: Vec<(u64, u64, String)> = Vec::new();
    while let Some(path) = open.pop() {
        let at = directory.join(&path);
        let failed = |source| ImagePackError::Read { path: at.clone(), source };
        for entry in fs::read_dir(&at).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let refused = |reason: String| ImagePackError::File { path: entry.path(), reason };
            let name =
                entry.file_name().into_string().map_err(|_| refused("its name is not UTF-8".into()))?;
            if name.starts_with(".wh.") {
                return Err(refused("names that begin with .wh. mark what is gone in images".into()));
            }
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            relative(&below).map_err(|reason| refused(reason.into_owned()))?;
            let metadata = entry.metadata().map_err(failed)?;
            let kind = metadata.file_type();
            let kind = if kind.is_dir() {
                open.push(below.clone());
                FoundKind::Directory
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(failed)?.into_os_string().into_string();
                let target = target.map_err(|_| refused("its link is not UTF-8".into()))?;
                if !is_link_target(&target) {
                    return Err(refused("its link is too long".into()));
                }
                FoundKind::Link(target)
            } else if kind.is_file() {
                if metadata.nlink() > 1 {
                    several.push((metadata.dev(), metadata.ino(), below.clone()));
                }
                FoundKind::File { size: metadata.len() }
            } else {
                debug_assert!(
                    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
                );
                walked.skipped.push(below);
                continue;
            };
            walked.entries.insert(below, Found { mode: metadata.mode() & 0o7777, kind });
            if walked.entries.len() as u64 > limits.entries {
                let reason = format!("it has more than {} files and directories", limits.entries);
                return Err(ImagePackError::File { path: directory.to_owned(), reason });
            }
        }
    }
    walked.skipped.sort();
    link(&mut walked.entries, several);
    Ok(walked)
}

/// Makes further names of a file into links to the first one in order.
fn link(entries: &mut BTreeMap<String, Found>, mut several: Vec<(u64, u64, String)>) {
    several.sort_by(|one, other| one.2.cmp(&other.2));
    let mut first: HashMap<(u64, u64), String> = HashMap::new();
    for (device, inode, path) in several {
        match first.get(&(device, inode)) {
            None => drop(first.insert((device, inode), path)),
            Some(before) => {
                if let Some(found) = entries.get_mut(&path) {
                    found.kind = FoundKind::HardLink(before.clone());
                }
            }
        }
    }
}
