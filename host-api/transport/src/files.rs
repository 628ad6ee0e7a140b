//! Files of keys and certificates: small, written whole or not at all, and those with keys for their owner alone.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// The largest file that is read: some hundred times as much as Periapt's own have.
const MAX_BYTES: u64 = 64 << 10;

/// An error of a file of a key or a certificate.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file has a key, and others than its owner can reach it.
    #[error(
        "{} has mode {mode:03o}, and others than its owner can reach it; `chmod 600` it, or replace the key if another user \
         may have read it",
        .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// The readers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner: it has a key.
    Owner,
    /// Everybody who may enter its directory.
    All,
}

/// Reads a text file; none if there is none.
///
/// # Errors
/// It cannot be read, or others can reach a key.
pub fn read_file(path: &Path, readers: Readers) -> Result<Option<String>, KeyFileError> {
    let failed = |source| KeyFileError::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    if readers == Readers::Owner && mode & 0o077 != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(Some(text))
}

/// Writes a file, in the place of an earlier one.
///
/// # Errors
/// It cannot be written; the earlier one then stays.
pub fn write_file(path: &Path, content: impl AsRef<[u8]>, readers: Readers) -> Result<(), KeyFileError> {
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    let partial = path.with_extension("partial");
    let write = || {
        let _ = fs::remove_file(&partial);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&partial)?;
        file.write_all(content.as_ref())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| KeyFileError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_its_owners_alone_and_refused_when_it_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        assert_eq!(read_file(&path, Readers::Owner).unwrap(), None);
        write_file(&path, "first", Readers::Owner).unwrap();
        write_file(&path, "key", Readers::Owner).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_file(&path, Readers::Owner).unwrap().as_deref(), Some("key"));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        for mode in [0o640, 0o604] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = read_file(&path, Readers::Owner).unwrap_err().to_string();
            assert!(error.contains(&format!("key.pem has mode {mode:03o}")), "{error}");
            assert_eq!(read_file(&path, Readers::All).unwrap().as_deref(), Some("key"));
        }
    }
}
