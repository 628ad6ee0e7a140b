//! The options of a certificate that an operator gives a controller.

use std::path::PathBuf;

use clap::Args;
use periapt_controller::CertificateFiles;

use crate::error::{Explain as _, Result};

/// The certificate that an operator gives, if any.
#[derive(Debug, Clone, Args)]
pub(crate) struct TlsArgs {
    /// A certificate of another authority for the first --public-name, in PEM form, followed by those of its
    /// authorities up to the one that clients trust; the controller's own serves all other names
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert in PEM form, which only its owner can read; both files are read again when they change
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// Returns the files with absolute paths, so that the controller finds them wherever it starts.
    pub(crate) fn files(&self) -> Result<Option<CertificateFiles>> {
        let Some((certificate, key)) = self.tls_cert.as_ref().zip(self.tls_key.as_ref()) else {
            return Ok(None);
        };
        let absolute = |path: &PathBuf| std::path::absolute(path).explain(|| format!("{}", path.display()));
        Ok(Some(CertificateFiles { certificate: absolute(certificate)?, key: absolute(key)? }))
    }
}
