//! Removal of files.

use std::{fs, io};

use super::{error::FileError, place::Place};

/// Removes a file or an empty directory.
pub(crate) fn remove(place: &Place) -> Result<(), FileError> {
    let failed = |error: io::Error| FileError::of("remove", &place.shown, &error);
    let removed = match fs::symlink_metadata(&place.path).map_err(failed)?.is_dir() {
        true => fs::remove_dir(&place.path),
        false => fs::remove_file(&place.path),
    };
    removed.map_err(failed)
}

/// Removes a file, or a directory with all below it. A path that is not there is no error.
pub(crate) fn remove_all(place: &Place) -> Result<(), FileError> {
    let failed = |error: io::Error| FileError::of("remove", &place.shown, &error);
    let removed = match fs::symlink_metadata(&place.path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&place.path),
        Ok(_) => fs::remove_file(&place.path),
        // A parent that is no directory has no children either.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        Err(error) => Err(error),
    };
    removed.map_err(failed)
}
