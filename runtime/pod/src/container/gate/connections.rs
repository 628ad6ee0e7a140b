//! Connections of workloads, which the kernel has redirected.

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

/// The connections at a time. The keeper has as many for one unit; further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// The time for the keeper's answer: somewhat more than it gives itself.
const ANSWERS_WITHIN: Duration = Duration::from_secs(35);

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Takes connections for as long as it runs.
pub(super) async fn take(listener: TcpListener, names: &Arc<Mutex<HostNames>>, calls: Arc<GateCalls>) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (names, calls) = (Arc::clone(names), Arc::clone(&calls));
                tokio::spawn(async move {
                    if let Err(error) = lead(stream, &names, &calls).await {
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
async fn lead(mut stream: TcpStream, names: &Mutex<HostNames>, calls: &GateCalls) -> io::Result<()> {
    let led = async {
        let order = target(ip_original_dst(&stream)?, names)?;
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

fn target(address: SocketAddrV4, names: &Mutex<HostNames>) -> io::Result<DialOrder> {
    if address.ip().is_loopback() {
        return Err(io::Error::other("it was not redirected"));
    }
    let names = names.lock().unwrap_or_else(PoisonError::into_inner);
    let host = names.host(*address.ip()).ok_or_else(|| io::Error::other("no name has the address"))?;
    Ok(DialOrder { host, port: address.port() })
}
