//! The gate of a container: the way of its workloads to other units, and to hosts outside that are granted.
//!
//! The container's network has the loopback alone, to which all addresses lead. The kernel redirects each connection to
//! another address than the loopback's to a socket of the pod's process, which asks the keeper for it by the address. A
//! name gets an address of its own when it is looked up, by which the gate knows it again. Nothing of this needs a right
//! over the host: the network is the container's.

use std::{
    io,
    net::{Ipv4Addr, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

mod calls;
mod connections;
mod kernel;
mod names;

pub(super) use calls::GateCalls;
use names::HostNames;

/// The address of the name server in `/etc/resolv.conf`. Like those of names, it is of a range for tests of networks that no
/// host has (RFC 2544).
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The sockets to which the kernel redirects what leaves the loopback.
#[derive(Debug)]
pub(super) struct Gate {
    connections: TcpListener,
    questions: UdpSocket,
}

impl Gate {
    /// Opens the gate of this process's network, of which it must be root.
    ///
    /// # Errors
    /// The kernel cannot redirect.
    pub(super) fn open() -> io::Result<Self> {
        let connections = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let questions = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        kernel::redirect(connections.local_addr()?.port(), questions.local_addr()?.port())?;
        Ok(Self { connections, questions })
    }

    /// Opens the gate of this process's network; none on a host that cannot give it, whose containers run all the same.
    pub(super) fn open_if_possible() -> Option<Self> {
        let opened = Self::open().inspect_err(|error| {
            tracing::warn!(
                "workloads in this container cannot call other units: {error}; it needs nf_tables with redirection"
            );
        });
        opened.ok()
    }

    /// Returns the content of `/etc/resolv.conf`. Charms in Python read the same
    /// (`host-api/sdk/python/periapt_ops/stand_ins/resolver.py`).
    pub(super) fn resolv() -> String {
        format!("nameserver {NAME_SERVER}\noptions timeout:5 attempts:2\n")
    }

    /// Takes connections and answers questions for names, for as long as it runs.
    pub(super) async fn serve(self, calls: Arc<GateCalls>) -> io::Result<()> {
        self.connections.set_nonblocking(true)?;
        self.questions.set_nonblocking(true)?;
        let connections = tokio::net::TcpListener::from_std(self.connections)?;
        let questions = tokio::net::UdpSocket::from_std(self.questions)?;
        let names = Arc::new(Mutex::new(HostNames::default()));
        tokio::join!(
            names::answer(questions, &names, &calls),
            connections::take(connections, &names, Arc::clone(&calls))
        );
        Ok(())
    }
}
