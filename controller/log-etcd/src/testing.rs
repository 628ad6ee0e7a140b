//! Servers of etcd for tests, on ports of loopback. They end with the value.

mod bare;
mod room;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context as _, bail};
use futures_util::future::join_all;
use periapt_host_api::StoreId;
use periapt_transport::testing::free_ports;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

use crate::{Encryption, EtcdOptions, EtcdUrl, connect::Member, open::check};

/// The timeout of the start of servers. No start takes this long, even on a slow machine.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The timeout of a server's status. A server that is paused gives none.
const STATUS_WITHIN: Duration = Duration::from_secs(2);

/// The ports of etcd for its other servers and for clients.
const PEER_PORT: u16 = 2380;
const CLIENT_PORT: u16 = 2379;

/// A cluster of etcd.
#[derive(Debug)]
pub struct TestEtcd {
    servers: Vec<Server>,
    directory: TempDir,
    encryption: Encryption,
}

/// The host of a server, in a network that a test has made.
#[derive(Debug, Clone)]
pub struct EtcdHost {
    /// The path of the network namespace.
    pub network: String,
    /// The address of the host.
    pub address: IpAddr,
}

#[derive(Debug)]
struct Server {
    endpoint: String,
    arguments: Vec<String>,
    /// The path of the network namespace; none: the test's own.
    network: Option<String>,
    process: Option<Child>,
}

/// The addresses of one server.
struct Place {
    network: Option<String>,
    /// The address and the port for the other servers.
    peer: SocketAddr,
    /// The address and the port for clients.
    client: SocketAddr,
}

impl TestEtcd {
    /// Starts servers. They answer a little later.
    ///
    /// # Panics
    /// Panics if there is no etcd, or it does not start: this is for tests.
    pub fn start(count: usize) -> Self {
        Self::start_with(count, &[])
    }

    /// Starts servers with further arguments.
    ///
    /// # Panics
    /// See [`Self::start`].
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn start_with(count: usize, more: &[&str]) -> Self {
        Self::start_in(TempDir::new().expect("a temporary directory can be made"), count, more)
    }

    /// Starts servers with their data in a directory of the caller's: the system's temporary directory may be in memory,
    /// where a sync does nothing.
    ///
    /// # Panics
    /// See [`Self::start`].
    pub fn start_in(directory: TempDir, count: usize, more: &[&str]) -> Self {
        Self::started(Self::prepare(directory, count, more), count)
    }

    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    fn started(prepared: anyhow::Result<Self>, count: usize) -> Self {
        let mut etcd = prepared.expect("etcd can be prepared");
        for number in 0..count {
            etcd.start_server(number);
        }
        etcd
    }

    /// Starts a server on each of these hosts, with etcd's own ports and further arguments.
    ///
    /// # Panics
    /// See [`Self::start`].
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn start_on(hosts: &[EtcdHost], more: &[&str]) -> Self {
        Self::start_on_in(TempDir::new().expect("a temporary directory can be made"), hosts, more)
    }

    /// Starts a server on each of these hosts as [`Self::start_on`] does, with their data in a directory of the caller's.
    ///
    /// # Panics
    /// See [`Self::start`].
    pub fn start_on_in(directory: TempDir, hosts: &[EtcdHost], more: &[&str]) -> Self {
        let places = hosts.iter().map(|EtcdHost { network, address }| Place {
            network: Some(network.clone()),
            peer: (*address, PEER_PORT).into(),
            client: (*address, CLIENT_PORT).into(),
        });
        Self::started(Ok(Self::at(directory, &places.collect::<Vec<_>>(), more)), hosts.len())
    }

    fn prepare(directory: TempDir, count: usize, more: &[&str]) -> anyhow::Result<Self> {
        let own = IpAddr::from(Ipv4Addr::LOCALHOST);
        let mut peers = free_ports(2 * count)?;
        let clients = peers.split_off(count);
        let places = peers.into_iter().zip(clients).map(|(peer, client)| Place {
            network: None,
            peer: (own, peer).into(),
            client: (own, client).into(),
        });
        Ok(Self::at(directory, &places.collect::<Vec<_>>(), more))
    }

    fn at(directory: TempDir, places: &[Place], more: &[&str]) -> Self {
        let cluster = places
            .iter()
            .enumerate()
            .map(|(number, place)| format!("{}=http://{}", name_of(number), place.peer));
        let cluster = cluster.collect::<Vec<_>>().join(",");
        let (scheme, encryption) = match more.iter().any(|argument| argument.starts_with("--cert-file")) {
            true => ("https", Encryption::Tls),
            false => ("http", Encryption::Plain),
        };
        let server = |(number, Place { network, peer, client }): (usize, &Place)| {
            let (peer, url) = (format!("http://{peer}"), format!("{scheme}://{client}"));
            let mut arguments = vec![
                format!("--name={}", name_of(number)),
                format!("--data-dir={}", Self::data_below(directory.path(), number).display()),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--initial-cluster={cluster}"),
                "--heartbeat-interval=50".to_owned(),
                "--election-timeout=500".to_owned(),
                "--log-level=fatal".to_owned(),
            ];
            arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
            Server { endpoint: client.to_string(), arguments, network: network.clone(), process: None }
        };
        let servers = places.iter().enumerate().map(server).collect();
        Self { servers, directory, encryption }
    }

    /// Waits until the servers answer.
    ///
    /// # Panics
    /// Panics if that takes long, or if it is called in a runtime.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn ready(&self) {
        let options = EtcdOptions { url: self.url(), tls: None, fresh_id: StoreId(Uuid::nil()) };
        let waiting = async { while check(&options).await.is_err() {} };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let waited = runtime.block_on(async { tokio::time::timeout(READY_WITHIN, waiting).await });
        waited.expect("etcd answers within a minute");
    }

    /// Returns the number of the server that leads now, as most servers tell; none if most tell none. Only for servers
    /// without TLS.
    ///
    /// # Panics
    /// Panics if it is called in a runtime.
    pub fn leader(&self) -> Option<usize> {
        let asked = self.servers.iter().map(|server| ids(&server.endpoint));
        let told: Vec<_> = done(join_all(asked));
        // A server that was paused believes for a moment that it still leads.
        let leads = |id: u64| {
            let named = told.iter().flatten().filter(|(_, leader)| *leader == id).count();
            named > self.servers.len() / 2
        };
        told.iter().position(|told| told.is_some_and(|(own, _)| leads(own)))
    }

    /// Returns true if a server answers and knows the one that leads. Only for servers without TLS.
    ///
    /// # Panics
    /// Panics if it is called in a runtime.
    pub fn knows_leader(&self, number: usize) -> bool {
        let told = self.servers.get(number).and_then(|server| done(ids(&server.endpoint)));
        told.is_some_and(|(_, leader)| leader != 0)
    }

    /// Returns the place of a log in these servers.
    pub fn url(&self) -> EtcdUrl {
        let endpoints = self.servers.iter().map(|server| server.endpoint.clone()).collect();
        EtcdUrl { endpoints, prefix: "periapt".into(), encryption: self.encryption }
    }

    /// Returns the directory in which the servers keep their data, and tests may keep theirs.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the directory of a server's data.
    pub fn data(&self, number: usize) -> PathBuf {
        Self::data_below(self.directory.path(), number)
    }

    /// Returns the directory of the data of a server that is started in this directory.
    pub fn data_below(directory: &Path, number: usize) -> PathBuf {
        directory.join(name_of(number))
    }

    /// Starts a server, for the first time or again.
    ///
    /// # Panics
    /// Panics if it cannot be started.
    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    pub fn start_server(&mut self, number: usize) {
        let server = self.servers.get_mut(number).expect("there is such a server");
        let program = program().expect("there is an etcd");
        let mut command = match &server.network {
            None => Command::new(program),
            Some(network) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={network}")).arg("--").arg(program);
                command
            }
        };
        command.args(&server.arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Settings of the shell that runs the tests are not those of the servers.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ETCD_")) {
            command.env_remove(name);
        }
        server.process = Some(command.spawn().expect("etcd can be started"));
    }

    /// Kills a server (SIGKILL).
    pub fn kill(&mut self, number: usize) {
        if let Some(mut process) = self.servers.get_mut(number).and_then(|server| server.process.take()) {
            // One that has ended already needs neither.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Returns true if a server does not run: it has ended by itself, or was killed.
    pub fn has_ended(&mut self, number: usize) -> bool {
        let process = self.servers.get_mut(number).and_then(|server| server.process.as_mut());
        process.is_none_or(|process| !matches!(process.try_wait(), Ok(None)))
    }

    /// Stops a server (SIGSTOP): its connections stay, and it answers nothing.
    ///
    /// # Panics
    /// Panics if the server does not run.
    pub fn pause(&self, number: usize) {
        self.signal(number, Signal::STOP);
    }

    /// Lets a server go on that was paused.
    ///
    /// # Panics
    /// Panics if the server does not run.
    pub fn resume(&self, number: usize) {
        self.signal(number, Signal::CONT);
    }

    #[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
    fn signal(&self, number: usize, signal: Signal) {
        let process = self.process(number).and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        kill_process(process.expect("the server runs"), signal).expect("the server's process is there");
    }

    /// Returns the id of a server's process.
    pub fn process(&self, number: usize) -> Option<u32> {
        self.servers.get(number)?.process.as_ref().map(Child::id)
    }
}

impl Drop for TestEtcd {
    fn drop(&mut self) {
        for number in 0..self.servers.len() {
            self.kill(number);
        }
    }
}

/// Returns the name of a server, which its directory has, too.
fn name_of(number: usize) -> String {
    format!("etcd-{number}")
}

/// Does some work in a runtime of its own.
#[expect(clippy::expect_used, reason = "a test says what failed by panicking")]
fn done<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(work)
}

/// Returns a server's own id, and that of the server which leads as far as it knows; none if it does not answer.
async fn ids(endpoint: &str) -> Option<(u64, u64)> {
    let mut maintenance = Member::new(endpoint, None).await.ok()?.maintenance;
    let status = tokio::time::timeout(STATUS_WITHIN, maintenance.status()).await.ok()?.ok()?;
    Some((status.header()?.member_id(), status.leader()))
}

/// Returns the path of etcd, which `tools/etcd` finds or downloads.
fn program() -> anyhow::Result<PathBuf> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/etcd");
    let found = Command::new(tool).stdin(Stdio::null()).output().context("tools/etcd cannot be run")?;
    let path = String::from_utf8(found.stdout)?.trim().to_owned();
    if !found.status.success() || path.is_empty() {
        bail!("{}", String::from_utf8_lossy(&found.stderr));
    }
    Ok(FOUND.get_or_init(|| path.into()).clone())
}
