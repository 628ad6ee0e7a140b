//! The certificate that the controller shows, which it issues itself and renews while it runs.

use std::{sync::Arc, time::Duration};

use periapt_host_api::Timestamp;
use periapt_transport::{Authority, CertificateError, PublicName, SERVER_VALIDITY, ServerCertificate};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;

/// The pause after a renewal that failed.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The source of a controller's certificates.
#[derive(Debug, Clone)]
pub(crate) struct CertificateSource {
    pub(crate) authority: Arc<Authority>,
    pub(crate) names: Vec<PublicName>,
}

impl CertificateSource {
    /// Issues the first certificate.
    pub(crate) fn first(&self, now: Timestamp) -> Result<ServerCertificate, CertificateError> {
        let (certificate, key) = self.authority.issue_server(&self.names, now)?;
        ServerCertificate::new(&certificate, &key)
    }
}

/// Renews a certificate after half of its validity, or when the clock was set back to before its issue, until the
/// controller stops.
pub(crate) async fn renew(
    source: CertificateSource,
    shown: ServerCertificate,
    mut issued: Timestamp,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    loop {
        let now = clock.now();
        let mut wait = due(issued).duration_since(now);
        if now < issued || wait <= jiff::SignedDuration::ZERO {
            let renewed = source.authority.issue_server(&source.names, now);
            match renewed.and_then(|(certificate, key)| shown.replace(&certificate, &key)) {
                Ok(()) => {
                    tracing::info!("renewed the controller's certificate");
                    issued = now;
                    wait = due(issued).duration_since(now);
                }
                Err(error) => {
                    tracing::warn!(%error, "the controller's certificate could not be renewed");
                    wait = AGAIN_AFTER.try_into().unwrap_or(jiff::SignedDuration::MAX);
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => return,
            // It wakes often enough to notice a clock that was set.
            () = clock.sleep(wait.unsigned_abs()) => {}
        }
    }
}

fn due(issued: Timestamp) -> Timestamp {
    issued.checked_add(SERVER_VALIDITY / 2).unwrap_or(Timestamp::MAX)
}
