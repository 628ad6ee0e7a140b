//! The gate of a container: the way of its workloads to other units, and to hosts outside that are granted.
//!
//! The container's network has the loopback alone, to which all addresses lead. The kernel redirects each connection to
//! another address than the loopback's to a socket of the pod's process, which asks the keeper for it by the address. A
//! name gets an address of its own when it is looked up, by which the gate knows it again. Nothing of this needs a right
//! over the host: the network is the container's.
//!
//! In the network of a unit that has WebAssembly workloads as well, the gate also listens on their ports of the loopback, and
//! asks the keeper for the unit itself.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket},
    sync::{Arc, Mutex},
};

use tokio::{sync::Semaphore, task::JoinSet};

mod calls;
mod connections;
mod kernel;
mod names;

pub(super) use calls::GateCalls;
use connections::GateTarget;
use names::HostNames;

/// The address of the name server in `/etc/resolv.conf`. Like those of names, it is of a range for tests of networks that no
/// host has (RFC 2544).
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// The connections at a time. The keeper has as many for one unit; further ones wait.
const MAX_CONNECTIONS: usize = 64;

/// The sockets to which the kernel redirects what leaves the loopback, and those on it that lead to WebAssembly workloads.
#[derive(Debug)]
pub(super) struct Gate {
    connections: TcpListener,
    questions: UdpSocket,
    forwarded: Vec<(u16, TcpListener)>,
}

impl Gate {
    /// Opens the gate of this process's network, of which it must be root. It listens on these ports for the unit's
    /// WebAssembly workloads.
    ///
    /// # Errors
    /// The kernel cannot redirect, or a port is taken.
    pub(super) fn open(forwarded: &BTreeSet<u16>) -> io::Result<Self> {
        // Before the kernel chooses ports for the others.
        let mut listeners = Vec::new();
        for port in forwarded {
            listeners.push((*port, TcpListener::bind((Ipv4Addr::LOCALHOST, *port))?));
            // A kernel without IPv6 has no such address, and no client that asks there.
            listeners
                .extend(TcpListener::bind((Ipv6Addr::LOCALHOST, *port)).map(|listener| (*port, listener)));
        }
        let connections = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let questions = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        kernel::redirect(connections.local_addr()?.port(), questions.local_addr()?.port())?;
        Ok(Self { connections, questions, forwarded: listeners })
    }

    /// Opens the gate of this process's network; none on a host that cannot give it, whose containers run all the same.
    pub(super) fn open_if_possible(forwarded: &BTreeSet<u16>) -> Option<Self> {
        let opened = Self::open(forwarded).inspect_err(|error| {
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
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut taking = JoinSet::new();
        for (port, listener) in self.forwarded {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let target = GateTarget::OwnUnit(port);
            taking.spawn(connections::take(listener, target, Arc::clone(&permits), Arc::clone(&calls)));
        }
        let target = GateTarget::Redirected(Arc::clone(&names));
        taking.spawn(connections::take(connections, target, permits, Arc::clone(&calls)));
        names::answer(questions, &names, &calls).await;
        Ok(())
    }
}
