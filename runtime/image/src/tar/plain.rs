//! Headers of archives that are made here: of root, without a time.

use tar::{EntryType, Header};

/// Returns the header of a member.
pub(crate) fn plain_header(kind: EntryType, size: u64, mode: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}
