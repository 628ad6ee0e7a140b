//! Lists of files.

use std::{
    fs::{self, Metadata},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::Path,
};

use jiff::Timestamp;
use periapt_host_api::glob::glob;
use serde_json::{Value, json};

use super::{error::FileError, place::Place};
use crate::driver::accounts::Accounts;

/// The most entries of a list: each takes some 300 bytes in memory and in the answer.
const MAX_ENTRIES: usize = 50_000;

/// The answer for a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Its entries.
    Content,
    /// The directory.
    Itself,
}

/// Lists a directory, or tells of a file, or of the directory itself.
pub(crate) fn list(
    root: &Path,
    place: &Place,
    pattern: &str,
    listing: Listing,
) -> Result<Vec<Value>, FileError> {
    let accounts = Accounts::read(root);
    let failed = |error: std::io::Error| FileError::of("stat", &place.shown, &error);
    let trimmed = place.shown.trim_end_matches('/');
    let shown = if trimmed.is_empty() { "/" } else { trimmed };
    let found = fs::metadata(&place.path).or_else(|_| fs::symlink_metadata(&place.path)).map_err(failed)?;
    if listing == Listing::Itself || !found.is_dir() {
        let found = fs::symlink_metadata(&place.path).map_err(failed)?;
        let name = shown.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/");
        return Ok(vec![entry(shown, name, &found, &accounts)]);
    }
    let mut entries = Vec::new();
    for item in fs::read_dir(&place.path).map_err(|error| FileError::of("open", &place.shown, &error))? {
        let item = item.map_err(|error| FileError::of("readdirent", &place.shown, &error))?;
        let name = item.file_name().to_string_lossy().into_owned();
        if !pattern.is_empty() && !glob(pattern, &name) {
            continue;
        }
        // A file that has gone meanwhile is not there.
        let Ok(found) = item.metadata() else { continue };
        if entries.len() >= MAX_ENTRIES {
            let message = format!("{} has more than {MAX_ENTRIES} entries: use a pattern", place.shown);
            return Err(FileError::other(message));
        }
        let path = format!("{trimmed}/{name}");
        entries.push((name.clone(), entry(&path, &name, &found, &accounts)));
    }
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn entry(path: &str, name: &str, found: &Metadata, accounts: &Accounts) -> Value {
    let kind = found.file_type();
    let word = match () {
        () if kind.is_file() => "file",
        () if kind.is_dir() => "directory",
        () if kind.is_symlink() => "symlink",
        () if kind.is_socket() => "socket",
        () if kind.is_fifo() => "named-pipe",
        () if kind.is_block_device() || kind.is_char_device() => "device",
        () => "unknown",
    };
    let nanoseconds = i32::try_from(found.mtime_nsec()).unwrap_or(0);
    let modified = Timestamp::new(found.mtime(), nanoseconds).unwrap_or(Timestamp::UNIX_EPOCH);
    let mut shown = json!({
        "path": path,
        "name": name,
        "type": word,
        "permissions": format!("{:03o}", found.mode() & 0o777),
        "last-modified": modified.to_string(),
        "user-id": found.uid(),
        "user": accounts.user_name(found.uid()),
        "group-id": found.gid(),
        "group": accounts.group_name(found.gid()),
    });
    if let Some(shown) = shown.as_object_mut().filter(|_| kind.is_file()) {
        shown.insert("size".to_owned(), found.len().into());
    }
    shown
}
