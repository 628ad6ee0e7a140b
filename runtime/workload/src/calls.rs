//! Requests of the workload to other units and to hosts outside, over connections that its pod's keeper makes.

use std::{
    io,
    os::{
        fd::{AsFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream as Started,
    },
    sync::Arc,
};

use http::uri::Scheme;
use periapt_helper::send_beside;
use periapt_host_api::pod::{DialOrder, MAX_HOST_BYTES, NAME_ASKED, OPENED};
use periapt_sandbox::{
    BoxFuture,
    workload::{Outbound, OutboundConnection, OutboundRefused, OutboundTarget},
};
use periapt_transport::web_client_config;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
};
use tokio_rustls::TlsConnector;

/// The way to other units and to hosts outside: a socket to the pod, on which the process sends one end of a stream with each
/// call. It encrypts the connections of `https` itself, so that nobody on the way reads them.
#[derive(Debug, Clone)]
pub(crate) struct PodOutbound {
    socket: Arc<UnixStream>,
    tls: OutboundTls,
}

/// The authorities by which this process knows servers of `https`, or the reason for having none.
#[derive(Debug, Clone)]
pub(crate) struct OutboundTls(Result<Arc<ClientConfig>, Arc<str>>);

impl OutboundTls {
    /// Reads the authorities that this host trusts. Behind the fence their files are out of reach.
    pub(crate) fn of_this_host() -> Self {
        Self(web_client_config(None).map_err(|error| error.to_string().into()))
    }

    async fn connect(&self, host: String, stream: UnixStream) -> CallResult {
        let config = self.0.as_ref().map_err(|reason| io::Error::other(reason.to_string()))?;
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await?;
        Ok(Box::new(stream))
    }
}

/// The result of a call.
type CallResult = Result<Box<dyn OutboundConnection>, OutboundRefused>;

impl PodOutbound {
    /// Takes the socket that the pod left open for this process. A runtime must have been entered.
    pub(crate) fn take(descriptor: RawFd, tls: OutboundTls) -> io::Result<Self> {
        if descriptor <= 2 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the pod left it open for this process under this number, and nothing else here uses it.
        #[expect(unsafe_code, reason = "a number of an inherited descriptor becomes an owned one")]
        let socket = Started::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        socket.set_nonblocking(true)?;
        Ok(Self { socket: Arc::new(UnixStream::from_std(socket)?), tls })
    }
}

impl Outbound for PodOutbound {
    fn connect(&self, target: OutboundTarget) -> BoxFuture<'static, CallResult> {
        let own = self.clone();
        Box::pin(async move { own.call(target).await })
    }
}

impl PodOutbound {
    async fn call(&self, OutboundTarget { scheme, host, port }: OutboundTarget) -> CallResult {
        let is_encrypted = scheme == Scheme::HTTPS;
        if !(is_encrypted || scheme == Scheme::HTTP) || host.len() > MAX_HOST_BYTES || port == NAME_ASKED {
            return Err(OutboundRefused::Denied);
        }
        let stream = self.open(DialOrder { host: host.clone(), port }).await?;
        match is_encrypted {
            true => self.tls.connect(host, stream).await,
            false => Ok(Box::new(stream)),
        }
    }

    /// Asks the keeper for a connection.
    async fn open(&self, order: DialOrder) -> Result<UnixStream, OutboundRefused> {
        let socket = &*self.socket;
        let mut line = serde_json::to_vec(&order).map_err(io::Error::from)?;
        line.push(b'\n');
        let (mut stream, theirs) = UnixStream::pair()?;
        let send = || send_beside(socket, &line, theirs.as_fd());
        if socket.async_io(Interest::WRITABLE, send).await? != line.len() {
            return Err(io::Error::from(io::ErrorKind::WriteZero).into());
        }
        drop(theirs);
        let mut word = [0];
        stream.read_exact(&mut word).await?;
        match word {
            [OPENED] => Ok(stream),
            _ => Err(OutboundRefused::Denied),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use periapt_helper::DescriptorLines;
    use periapt_host_api::{Timestamp, pod::REFUSED};
    use periapt_transport::{Authority, ServerCertificate, server_config};
    use tokio::io::AsyncWriteExt as _;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Plays a keeper that grants `api.example.com`, whose server echoes a line over TLS, and `plain.example.com`, whose
    /// server speaks first.
    async fn play(socket: UnixStream, acceptor: TlsAcceptor) {
        let mut lines = DescriptorLines::new(4 << 10);
        while socket.async_io(Interest::READABLE, || lines.receive(&socket)).await.unwrap() > 0 {
            while let Some(line) = lines.line().unwrap() {
                let order: DialOrder = serde_json::from_slice(&line).unwrap();
                let mut stream = Started::from(lines.descriptor().unwrap());
                let is_granted = order.host.ends_with(".example.com");
                stream.write_all(&[if is_granted { OPENED } else { REFUSED }]).unwrap();
                stream.set_nonblocking(true).unwrap();
                let mut stream = UnixStream::from_std(stream).unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if order.host == "plain.example.com" {
                        return stream.write_all(b"plain").await;
                    }
                    let mut stream = acceptor.accept(stream).await?;
                    let mut asked = [0; 5];
                    stream.read_exact(&mut asked).await?;
                    stream.write_all(&asked).await?;
                    stream.shutdown().await
                });
            }
        }
    }

    fn target(scheme: Scheme, host: &str) -> OutboundTarget {
        OutboundTarget { scheme, host: host.to_owned(), port: 443 }
    }

    #[tokio::test]
    async fn connections_of_https_are_encrypted_and_their_servers_known() {
        let (authority, other) = (Authority::generate().unwrap(), Authority::generate().unwrap());
        let names = ["api.example.com".parse().unwrap()];
        let (certificate, key) = authority.issue_server(&names, Timestamp::now()).unwrap();
        let shown = ServerCertificate::new(&certificate, &key).unwrap();
        let acceptor = TlsAcceptor::from(server_config(&shown, authority.certificate()).unwrap());
        let trusting = |authority: &Authority| {
            OutboundTls(Ok(web_client_config(Some(authority.certificate())).unwrap()))
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(play(theirs, acceptor));
        let outbound = PodOutbound { socket: Arc::new(ours), tls: trusting(&authority) };
        let connect = |outbound: &PodOutbound, scheme, host| outbound.connect(target(scheme, host));

        let mut stream = connect(&outbound, Scheme::HTTPS, "api.example.com").await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        let mut echoed = Vec::new();
        stream.read_to_end(&mut echoed).await.unwrap();
        assert_eq!(echoed, b"hello");
        let mut stream = connect(&outbound, Scheme::HTTP, "plain.example.com").await.unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"plain");

        // A server of another name, one that speaks no TLS, and hosts that are not granted.
        for host in ["www.example.com", "plain.example.com"] {
            let refused = connect(&outbound, Scheme::HTTPS, host).await.err().unwrap();
            assert!(matches!(refused, OutboundRefused::Unreachable(_)), "{host}: {refused}");
        }
        for (scheme, host) in [(Scheme::HTTPS, "other.example"), (Scheme::HTTP, "other.example")] {
            let refused = connect(&outbound, scheme, host).await.err().unwrap();
            assert!(matches!(refused, OutboundRefused::Denied), "{refused}");
        }
        let ftp = Scheme::try_from("ftp").unwrap();
        let refused = connect(&outbound, ftp, "api.example.com").await.err().unwrap();
        assert!(matches!(refused, OutboundRefused::Denied), "{refused}");

        // Another authority, and a host without any.
        let without = OutboundTls(Err("this host has no certificates of authorities".into()));
        for tls in [trusting(&other), without] {
            let outbound = PodOutbound { tls, ..outbound.clone() };
            let refused = connect(&outbound, Scheme::HTTPS, "api.example.com").await.err().unwrap();
            assert!(matches!(refused, OutboundRefused::Unreachable(_)), "{refused}");
        }
    }
}
