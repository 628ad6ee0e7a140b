//! The owners of an image's files, for a runtime that shows its layers.

use crate::{cache::UnpackedImage, table::EntryKind};

/// The right of users who are neither the owner nor in its group to read a file.
const OTHERS_READ: u32 = 0o004;

impl UnpackedImage {
    /// Returns the owners and modes of what is not root's or not on the disk as the image has it: records of mode
    /// (octal), user, group and path, with spaces between them, each ended by a null byte.
    ///
    /// It has directories, and of files those alone that not everybody may read: a runtime copies each file to change
    /// its owner.
    pub fn owners(&self) -> Vec<u8> {
        let mut records = Vec::new();
        for (path, (_, entry)) in &self.merged.entries {
            let matters = match entry.kind {
                EntryKind::Directory { .. } => true,
                EntryKind::File { .. } => entry.mode & OTHERS_READ == 0,
                EntryKind::HardLink { .. }
                | EntryKind::Link { .. }
                | EntryKind::Skipped { .. }
                | EntryKind::Whiteout => false,
            };
            // Set-user-id and set-group-id of files have no effect without new privileges.
            let mode = if entry.is_directory() { entry.mode & 0o7777 } else { entry.mode & 0o777 };
            let is_so = (entry.uid, entry.gid) == (0, 0)
                && mode == entry.mode_on_disk()
                && !self.merged.shadowed.contains(path);
            if matters && !is_so {
                let (user, group) = (entry.uid, entry.gid);
                records.extend_from_slice(format!("{mode:o} {user} {group} {path}\0").as_bytes());
            }
        }
        records
    }
}
