//! The addresses of a controller, with its certificate and the authority that issues certificates.

mod authority;
mod certificate;
mod given;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use periapt_host_api::Timestamp;
use periapt_transport::{Authority, MemoryAddress, PublicName, ServerCertificate};

pub use self::{
    authority::AuthorityError,
    given::{CertificateFiles, GivenFileError},
};
pub(crate) use self::{
    certificate::{CertificateSource, renew},
    given::Given,
};

/// The name of the socket in the controller's directory.
const SOCKET: &str = "control.socket";

/// The addresses that a controller listens on.
#[derive(Debug, Clone)]
pub enum Listen {
    /// A loopback address without TLS, for clients in the same process: the controller believes the identity that they
    /// name. For tests and benchmarks: the program has no such option.
    InProcess(SocketAddr),
    /// An address of a network in memory, for simulations. The controller calls others by the same network, and believes
    /// the identity that callers name.
    Memory(MemoryAddress),
    /// An address with TLS, and a socket for processes of the controller's own user.
    Tls(TlsListen),
}

/// The authority that issues agents' certificates; none in a controller without TLS.
#[derive(Clone, Default)]
pub(crate) struct Issuer(pub(crate) Option<Arc<Issuing>>);

/// An authority, and the certificates of the authorities by which agents know the controller.
pub(crate) struct Issuing {
    pub(crate) authority: Arc<Authority>,
    /// The certificates as PEM text: the controller's own, and that of the authority of a given certificate.
    pub(crate) trusted: String,
}

/// An address with TLS, and a socket.
#[derive(Debug, Clone)]
pub struct TlsListen {
    /// The address. Port 0 takes any free port.
    pub address: SocketAddr,
    /// Further names by which clients call the controller. The first one stands in its URL.
    pub public_names: Vec<PublicName>,
    /// The authority that issues the certificates of the controller and of its agents.
    pub authority: Arc<Authority>,
    /// The certificate of an authority elsewhere, which is shown to clients that call by one of its names.
    pub given: Option<CertificateFiles>,
    /// The path of the socket.
    pub socket: PathBuf,
}

impl TlsListen {
    /// Returns the addresses of a controller with its data in this directory, which has its authority (`ca.pem`,
    /// `ca-key.pem`) and its socket (`control.socket`). Makes the authority at the first start.
    ///
    /// # Errors
    /// The authority's files cannot be used.
    pub fn in_directory(
        directory: &Path,
        address: SocketAddr,
        public_names: Vec<PublicName>,
    ) -> Result<Self, AuthorityError> {
        let authority = Arc::new(authority::in_directory(directory)?);
        Ok(Self { address, public_names, authority, given: None, socket: directory.join(SOCKET) })
    }

    /// Reads the certificate that an operator gives, and shows it from now on.
    pub(crate) fn show_given(
        &self,
        shown: &ServerCertificate,
        now: Timestamp,
    ) -> Result<Option<Given>, GivenFileError> {
        let Some(files) = self.given.clone() else { return Ok(None) };
        let (names, shown) = (self.public_names.clone(), shown.clone());
        let now = files.checked(&names, now)?;
        shown.show_to_callers_of_its_names(&now);
        Ok(Some(Given { files, names, shown, now }))
    }

    /// Returns the certificates of the authorities by which agents know the controller, as PEM text. The last one is that
    /// of a given certificate.
    pub(crate) fn trusted(&self, given: Option<&Given>) -> String {
        let given = given.map_or("", Given::authority);
        format!("{}{given}", self.authority.certificate())
    }

    /// Returns the names of the server's certificate: this host's own, the address, and the public ones.
    pub(crate) fn names(&self) -> Vec<PublicName> {
        let mut names = PublicName::of_this_host();
        if !self.address.ip().is_unspecified() {
            names.push(self.address.ip().into());
        }
        names.extend(self.public_names.iter().cloned());
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        names
    }

    /// Returns the controller's URL, once its port is known.
    pub(crate) fn url(&self, bound: SocketAddr) -> String {
        match self.public_names.first() {
            Some(name) => format!("https://{}:{}", name.in_url(), bound.port()),
            None => format!("https://{bound}"),
        }
    }
}
