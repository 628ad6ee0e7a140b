//! The connections to other controllers, over TLS with a certificate that names a controller.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::SignedDuration;
use parking_lot::Mutex;
use periapt_client::{Client, ClientError, Identity, Options};
use periapt_host_api::Timestamp;
use periapt_transport::{
    Authority, CertificateError, ClientCertificate, MemoryCaller, SERVER_VALIDITY, Trust,
};

use crate::clock::Clock;

/// The most controllers that connections are kept to.
const MAX_LINKS: usize = 16;

/// The connections to other controllers. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Links {
    shared: Arc<Shared>,
}

struct Shared {
    identity: LinkIdentity,
    clients: Mutex<BTreeMap<String, Client>>,
}

/// The identity that a controller proves to others.
pub(crate) enum LinkIdentity {
    /// A certificate, which the common authority issues.
    Certificate(LinkCertificate),
    /// None: all controllers are in one process, such as a test's, and may have a network in memory.
    InProcess(Option<MemoryCaller>),
}

/// The certificate of a controller as a client of others. It is renewed after half of its validity.
pub(crate) struct LinkCertificate {
    authority: Arc<Authority>,
    member: String,
    clock: Arc<dyn Clock>,
    shown: ClientCertificate,
    issued: Mutex<Timestamp>,
}

impl LinkCertificate {
    /// Issues the first certificate.
    pub(crate) fn issue(
        authority: Arc<Authority>,
        member: String,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CertificateError> {
        let shown = ClientCertificate::default();
        let certificate = Self { authority, member, clock, shown, issued: Mutex::new(Timestamp::UNIX_EPOCH) };
        certificate.renew(certificate.clock.now())?;
        Ok(certificate)
    }

    fn renew(&self, now: Timestamp) -> Result<(), CertificateError> {
        let (certificate, key) = self.authority.issue_controller(&self.member, now)?;
        self.shown.set_pem(&certificate, &key)?;
        *self.issued.lock() = now;
        Ok(())
    }

    /// Renews the certificate if half of its validity is over, or the clock was set back to before its issue.
    fn renew_if_due(&self) {
        let (now, issued) = (self.clock.now(), *self.issued.lock());
        let half = SignedDuration::try_from(SERVER_VALIDITY / 2).unwrap_or(SignedDuration::MAX);
        let age = now.duration_since(issued);
        if (age < SignedDuration::ZERO || age > half)
            && let Err(error) = self.renew(now)
        {
            tracing::warn!(%error, "the certificate for other controllers could not be renewed");
        }
    }
}

impl Links {
    pub(crate) fn new(identity: LinkIdentity) -> Self {
        Self { shared: Arc::new(Shared { identity, clients: Mutex::default() }) }
    }

    /// Returns the client of another controller, by its URL.
    pub(crate) fn to(&self, url: &str) -> Result<Client, ClientError> {
        if let LinkIdentity::Certificate(certificate) = &self.shared.identity {
            certificate.renew_if_due();
        }
        let mut clients = self.shared.clients.lock();
        if let Some(client) = clients.get(url) {
            return Ok(client.clone());
        }
        // The caller knows better when and where to try again.
        let mut options = Options::new(url, Identity::Controller)
            .with_retry_timeout(Duration::ZERO)
            .with_busy_retry_timeout(Duration::ZERO);
        match &self.shared.identity {
            LinkIdentity::InProcess(memory) => options = options.with_memory(memory.clone()),
            LinkIdentity::Certificate(certificate) => {
                options = options
                    .with_trust(Trust::Authority(certificate.authority.certificate().to_owned()))
                    .with_certificate(certificate.shown.clone());
            }
        }
        let client = Client::new(options)?;
        if clients.len() >= MAX_LINKS {
            clients.clear();
        }
        clients.insert(url.to_owned(), client.clone());
        Ok(client)
    }
}
