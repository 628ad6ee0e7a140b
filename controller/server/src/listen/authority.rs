//! The files of a controller's authority: `ca.pem`, which clients are given, and `ca-key.pem`, which nobody else reads.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use periapt_transport::{Authority, CertificateError, KeyFileError, Readers, read_file, write_file};

/// The file of the certificate.
const CERTIFICATE: &str = "ca.pem";
/// The file of the key.
const KEY: &str = "ca-key.pem";
/// The key until the certificate is written, too.
const NEW_KEY: &str = "ca-key.pem.new";

/// An error of the files of a controller's authority.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// One of the two files is missing.
    #[error(
        "{} is missing, but {} is there: restore it from a backup; or move the other file away, and the controller makes \
         a new authority, whose certificate all clients and agents must be given",
        .missing.display(), .found.display()
    )]
    Half {
        /// The missing file.
        missing: PathBuf,
        /// The other one.
        found: PathBuf,
    },
    /// A file cannot be read or written, or others can reach the key.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// A file has no authority, or the two do not belong together.
    #[error(
        "{}: {source}; restore both files from a backup; or move both away, and the controller makes a new authority, \
         whose certificate all clients and agents must be given",
        .path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: CertificateError,
    },
}

/// Reads the authority of a directory, or makes it if there is none.
pub(super) fn in_directory(directory: &Path) -> Result<Authority, AuthorityError> {
    let place = |file: &str| directory.join(file);
    let certificate = read_file(&place(CERTIFICATE), Readers::All)?;
    let key = read_file(&place(KEY), Readers::Owner)?;
    let unusable = |source| AuthorityError::Unusable { path: place(CERTIFICATE), source };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Authority::from_pem(&certificate, &key).map_err(unusable),
        (Some(certificate), None) => match read_file(&place(NEW_KEY), Readers::Owner)? {
            // The start that made them was cut short before the last step.
            Some(key) => {
                let authority = Authority::from_pem(&certificate, &key).map_err(unusable)?;
                finish(directory).map(|()| authority)
            }
            None => Err(AuthorityError::Half { missing: place(KEY), found: place(CERTIFICATE) }),
        },
        (None, Some(_)) => Err(AuthorityError::Half { missing: place(CERTIFICATE), found: place(KEY) }),
        (None, None) => {
            let authority = Authority::generate().map_err(unusable)?;
            write_file(&place(NEW_KEY), authority.key_pem(), Readers::Owner)?;
            write_file(&place(CERTIFICATE), authority.certificate(), Readers::All)?;
            finish(directory).map(|()| authority)
        }
    }
}

/// Gives the key its name: the last step of making an authority.
fn finish(directory: &Path) -> Result<(), AuthorityError> {
    let path = directory.join(KEY);
    let failed = |source| KeyFileError::File { path: path.clone(), source };
    fs::rename(directory.join(NEW_KEY), &path).map_err(failed)?;
    Ok(File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn error(directory: &Path) -> String {
        in_directory(directory).unwrap_err().to_string()
    }

    #[test]
    fn an_authority_is_made_once_and_its_key_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let first = in_directory(directory.path()).unwrap();
        let mode = fs::metadata(directory.path().join(KEY)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = in_directory(directory.path()).unwrap();
        assert_eq!(first.certificate(), again.certificate());
        assert_eq!(first.certificate(), fs::read_to_string(directory.path().join(CERTIFICATE)).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_first_start_that_was_cut_short_is_finished_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let place = |file: &str| directory.path().join(file);
        let first = in_directory(directory.path()).unwrap();
        fs::rename(place(KEY), place(NEW_KEY)).unwrap();
        assert_eq!(in_directory(directory.path()).unwrap().certificate(), first.certificate());
        // Before the certificate was written nobody had been given it.
        fs::rename(place(KEY), place(NEW_KEY)).unwrap();
        fs::remove_file(place(CERTIFICATE)).unwrap();
        assert_ne!(in_directory(directory.path()).unwrap().certificate(), first.certificate());
        assert!(!place(NEW_KEY).exists());
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_the_way_back() {
        let directory = tempfile::tempdir().unwrap();
        let place = |file: &str| directory.path().join(file);
        in_directory(directory.path()).unwrap();
        let key = fs::read_to_string(place(KEY)).unwrap();

        fs::set_permissions(place(KEY), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(
            error(directory.path())
                .contains("ca-key.pem has mode 640, and others than its owner can reach it")
        );
        fs::remove_file(place(KEY)).unwrap();
        assert!(
            error(directory.path()).contains("ca-key.pem is missing, but"),
            "{}",
            error(directory.path())
        );
        write_file(&place(KEY), "no key", Readers::Owner).unwrap();
        assert!(
            error(directory.path()).contains("no private key in PEM form"),
            "{}",
            error(directory.path())
        );
        write_file(&place(KEY), Authority::generate().unwrap().key_pem(), Readers::Owner).unwrap();
        assert!(error(directory.path()).contains("made for another key; restore both files"));
        write_file(&place(KEY), &key, Readers::Owner).unwrap();
        fs::write(place(CERTIFICATE), "").unwrap();
        assert!(error(directory.path()).contains("ca.pem: no certificate in PEM form"));
        fs::remove_file(place(CERTIFICATE)).unwrap();
        assert!(error(directory.path()).contains("ca.pem is missing, but"));
    }
}
