//! The certificate that an operator gives: two files, which are read again while the controller runs.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::Timestamp;
use periapt_transport::{
    CertificateError, GivenCertificate, GivenCertificateError, KeyFileError, PublicName, Readers,
    ServerCertificate, read_file,
};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// The interval at which the files are read again.
const READ_EVERY: Duration = Duration::from_secs(60);

/// The time before the certificate's end from which the controller warns.
const WARNED_BEFORE: jiff::SignedDuration = jiff::SignedDuration::from_hours(14 * 24);

/// The interval of these warnings.
const WARNED_EVERY: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// The files of a certificate that an operator gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by those of its authorities, up to the one that clients trust, in PEM form.
    pub certificate: PathBuf,
    /// Its key in PEM form, which only its owner can read.
    pub key: PathBuf,
}

/// An error of a certificate that an operator gives.
#[derive(Debug, thiserror::Error)]
pub enum GivenFileError {
    /// A file is missing.
    #[error("{}: no such file", .0.display())]
    Missing(PathBuf),
    /// A file cannot be read, or others can reach the key.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The files cannot be used.
    #[error("{} with the key {}: {source}", .certificate.display(), .key.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        source: CertificateError,
    },
    /// Clients would refuse the certificate.
    #[error("{}: {source}", .certificate.display())]
    Unfit {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The reason.
        source: GivenCertificateError,
    },
    /// No DNS name tells by which name clients call.
    #[error(
        "a certificate of one's own needs --public-name with the DNS name by which clients call the controller"
    )]
    Unnamed,
}

impl CertificateFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used, or they do not belong together.
    pub fn read(&self) -> Result<GivenCertificate, GivenFileError> {
        let certificate = existing(&self.certificate, Readers::All)?;
        let key = existing(&self.key, Readers::Owner)?;
        GivenCertificate::from_pem(&certificate, &key).map_err(|source| GivenFileError::Unusable {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })
    }

    /// Reads the files, and checks the certificate as clients do. Clients that call by an address are shown the
    /// controller's own certificate, so only DNS names count.
    pub(super) fn checked(
        &self,
        names: &[PublicName],
        now: Timestamp,
    ) -> Result<GivenCertificate, GivenFileError> {
        let names: Vec<PublicName> = names.iter().filter(|name| name.is_dns()).cloned().collect();
        if names.is_empty() {
            return Err(GivenFileError::Unnamed);
        }
        let given = self.read()?;
        given
            .check(&names, now)
            .map_err(|source| GivenFileError::Unfit { certificate: self.certificate.clone(), source })?;
        Ok(given)
    }
}

fn existing(path: &Path, readers: Readers) -> Result<String, GivenFileError> {
    read_file(path, readers)?.ok_or_else(|| GivenFileError::Missing(path.to_owned()))
}

/// The certificate that an operator has given, while the controller shows it.
#[derive(Debug)]
pub(crate) struct Given {
    pub(super) files: CertificateFiles,
    pub(super) names: Vec<PublicName>,
    pub(super) shown: ServerCertificate,
    pub(super) now: GivenCertificate,
}

impl Given {
    /// Returns the certificate of the authority that clients trust, as PEM text.
    pub(crate) fn authority(&self) -> &str {
        self.now.authority()
    }

    /// Shows what the files hold, and warns before the end of the certificate, until the controller stops.
    pub(crate) async fn follow(mut self, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let (mut warned, mut failed): (Option<Timestamp>, Option<String>) = (None, None);
        loop {
            let now = clock.now();
            match self.renewed(now) {
                Ok(Some(renewed)) => {
                    self.shown.show_to_callers_of_its_names(&renewed);
                    tracing::info!(until = %renewed.until(), "shows the new certificate of --tls-cert");
                    (self.now, warned, failed) = (renewed, None, None);
                }
                Ok(None) => failed = None,
                Err(error) => {
                    // One line for each defect, however long it lasts.
                    if failed.as_ref() != Some(&error) {
                        tracing::warn!(%error, "the earlier certificate of --tls-cert stays");
                    }
                    failed = Some(error);
                }
            }
            let until = self.now.until();
            let is_told = warned.is_some_and(|at| now.duration_since(at).abs() < WARNED_EVERY);
            if until.duration_since(now) < WARNED_BEFORE && !is_told {
                tracing::warn!(%until, "the certificate of --tls-cert ends soon: replace its files");
                warned = Some(now);
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(READ_EVERY) => {}
            }
        }
    }

    /// Returns the certificate of the files, if it is another one than is shown.
    fn renewed(&self, now: Timestamp) -> Result<Option<GivenCertificate>, String> {
        let read = self.files.read().map_err(|error| error.to_string())?;
        if read.is_same(&self.now) {
            return Ok(None);
        }
        let checked = self.files.checked(&self.names, now).map_err(|error| error.to_string())?;
        if checked.authority() != self.now.authority() {
            return Err(format!(
                "{}: it is of another authority, which clients do not trust yet; start the controller again to use it",
                self.files.certificate.display()
            ));
        }
        Ok(Some(checked))
    }
}
