//! Removal of files.

use std::{fs, io};

use super::{error::FileError, place::Place};

/// Removes a file or an empty directory; with `recursive` all below a directory, and nothing if it is not there.
pub(crate) fn remove(place: &Place, recursive: bool) -> Result<(), FileError> {
    let failed = |error: io::Error| FileError::of("remove", &place.shown, &error);
    let found = match fs::symlink_metadata(&place.path) {
        Ok(found) => found,
        // A parent that is no directory has no children either.
        Err(error)
            if recursive
                && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            return Ok(());
        }
        Err(error) => return Err(failed(error)),
    };
    let removed = match (found.is_dir(), recursive) {
        (true, true) => fs::remove_dir_all(&place.path),
        (true, false) => fs::remove_dir(&place.path),
        (false, _) => fs::remove_file(&place.path),
    };
    removed.map_err(failed)
}
