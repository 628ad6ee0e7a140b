//! The addresses that a controller listens on.

use std::{net::SocketAddr, sync::Arc};

use periapt_host_api::Timestamp;
use periapt_transport::{ServerCertificate, server_config};
use tokio::net::TcpListener;

use super::BuildError;
use crate::{
    api,
    listen::{CertificateSource, Given, Issuer, Issuing, Listen},
};

/// The bound addresses of a controller.
pub(super) struct Bound {
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) listeners: Vec<api::Listener>,
    /// The certificate that the controller renews, with its source and the time of its issue.
    pub(super) certificate: Option<(CertificateSource, ServerCertificate, Timestamp)>,
    pub(super) given: Option<Given>,
    pub(super) issuer: Issuer,
}

/// Binds the addresses. The open store proves that no other controller uses the socket's directory.
pub(super) async fn bind(listen: &Listen, now: Timestamp) -> Result<Bound, BuildError> {
    match listen {
        Listen::InProcess(address) => {
            let (listener, address) = bind_tcp(*address).await?;
            let listeners = vec![api::Listener::InProcess(listener)];
            let (url, issuer) = (format!("http://{address}"), Issuer::default());
            Ok(Bound { address, url, listeners, certificate: None, given: None, issuer })
        }
        Listen::Memory(memory) => {
            let address = memory.address;
            let listeners = vec![api::Listener::Memory(memory.caller.listen(address), address)];
            let (url, issuer) = (format!("http://{address}"), Issuer::default());
            Ok(Bound { address, url, listeners, certificate: None, given: None, issuer })
        }
        Listen::Tls(tls) => {
            if tls.address.ip().is_unspecified() && tls.public_names.is_empty() {
                return Err(BuildError::Unnamed(tls.address));
            }
            let source = CertificateSource { authority: Arc::clone(&tls.authority), names: tls.names() };
            let shown = source.first(now)?;
            let given = tls.show_given(&shown, now)?;
            let trusted = tls.trusted(given.as_ref());
            let issuer = Issuer(Some(Arc::new(Issuing { authority: Arc::clone(&tls.authority), trusted })));
            let config = server_config(&shown, tls.authority.certificate())?;
            let (listener, address) = bind_tcp(tls.address).await?;
            let failed = |source| BuildError::Listen { address: tls.socket.display().to_string(), source };
            let socket = api::Listener::socket(&tls.socket).map_err(failed)?;
            let listeners = vec![api::Listener::tls(listener, config), socket];
            let (url, certificate) = (tls.url(address), Some((source, shown, now)));
            Ok(Bound { address, url, listeners, certificate, given, issuer })
        }
    }
}

async fn bind_tcp(address: SocketAddr) -> Result<(TcpListener, SocketAddr), BuildError> {
    let failed = |source| BuildError::Listen { address: address.to_string(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
