//! Connections of workloads, to which the gate listens.

use std::{
    io,
    net::SocketAddrV4,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::pod::DialOrder;
use rustix::net::sockopt::ip_original_dst;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::sleep,
};

use super::{calls::GateCalls, names::HostNames};

/// The time for the keeper's answer: somewhat more than it gives itself.
const ANSWERS_WITHIN: Duration = Duration::from_secs(35);

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The name by which the gate asks the keeper for its own unit.
const OWN_UNIT: &str = "localhost";

/// The target of the connections to one listener.
#[derive(Debug, Clone)]
pub(super) enum GateTarget {
    /// The address from which the kernel has redirected the connection, or the name that has it.
    Redirected(Arc<Mutex<HostNames>>),
    /// A port of a WebAssembly workload of the own unit.
    OwnUnit(u16),
}

/// Takes connections for as long as it runs. Each has a permit while it is open.
pub(super) async fn take(
    listener: TcpListener,
    target: GateTarget,
    permits: Arc<Semaphore>,
    calls: Arc<GateCalls>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
                let (target, calls) = (target.clone(), Arc::clone(&calls));
                tokio::spawn(async move {
                    if let Err(error) = lead(stream, &target, &calls).await {
                        tracing::debug!("a workload's connection leads nowhere: {error}");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("a workload's connection could not be accepted: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Leads a connection to where its workload meant it to go, or resets it.
async fn lead(mut stream: TcpStream, target: &GateTarget, calls: &GateCalls) -> io::Result<()> {
    let led = async {
        let order = target.order(&stream)?;
        let mut other = calls.ask(&order, ANSWERS_WITHIN).await?;
        copy_bidirectional(&mut stream, &mut other).await.map(|_| ())
    };
    let led = led.await;
    if led.is_err() {
        // Without it, the workload sees an end in order.
        let _ = stream.set_zero_linger();
    }
    led
}

impl GateTarget {
    /// Returns the order to the keeper for a connection.
    fn order(&self, stream: &TcpStream) -> io::Result<DialOrder> {
        match self {
            Self::Redirected(names) => redirected(ip_original_dst(stream)?, names),
            Self::OwnUnit(port) => Ok(DialOrder { host: OWN_UNIT.to_owned(), port: *port }),
        }
    }
}

fn redirected(address: SocketAddrV4, names: &Mutex<HostNames>) -> io::Result<DialOrder> {
    if address.ip().is_loopback() {
        return Err(io::Error::other("it was not redirected"));
    }
    let names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let host = names.host(*address.ip()).ok_or_else(|| io::Error::other("no name has the address"))?;
    Ok(DialOrder { host, port: address.port() })
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, net::Ipv4Addr, os::unix::net::UnixStream as Started};

    use periapt_helper::DescriptorLines;
    use periapt_host_api::pod::{OPENED, REFUSED};
    use tokio::{
        io::{AsyncReadExt as _, Interest},
        net::UnixStream,
    };

    use super::*;

    /// Plays a keeper: each call is answered with a word and, if it is opened, with the call's text.
    async fn play(pod: UnixStream, words: [u8; 2]) {
        let mut lines = DescriptorLines::new(4 << 10);
        let mut words = words.into_iter();
        while pod.async_io(Interest::READABLE, || lines.receive(&pod)).await.unwrap() > 0 {
            while let Some(line) = lines.line().unwrap() {
                let word = words.next().unwrap();
                let order: DialOrder = serde_json::from_slice(&line).unwrap();
                let stream = Started::from(lines.descriptor().unwrap());
                (&stream).write_all(&[word]).unwrap();
                if word == OPENED {
                    (&stream).write_all(format!("{} {}", order.host, order.port).as_bytes()).unwrap();
                }
            }
        }
    }

    #[tokio::test]
    async fn a_forwarded_port_leads_to_the_own_unit_or_is_reset() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(GateCalls::default());
        let (ours, pod) = UnixStream::pair().unwrap();
        calls.add(ours);
        tokio::spawn(play(pod, [OPENED, REFUSED]));
        let permits = Arc::new(Semaphore::new(1));
        tokio::spawn(take(listener, GateTarget::OwnUnit(8080), permits, calls));
        let mut heard = String::new();
        TcpStream::connect(address).await.unwrap().read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "localhost 8080");
        // The one permit is free again.
        let refused = TcpStream::connect(address).await.unwrap().read(&mut [0]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionReset);
    }
}
