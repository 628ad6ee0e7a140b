//! A controller and an agent on this machine, in the background.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use periapt_client::Client;
use periapt_controller::CertificateFiles;
use periapt_host_api::AgentName;
use periapt_transport::{GivenCertificate, Readers, write_file};
use tokio::time::{Instant, sleep};

use crate::{
    blobs_args::BlobsArgs,
    context::local_client,
    data::{ControllerDir, ControllerName, Local, TlsFiles},
    error::{Explain as _, Failure, Result, with_source},
    input,
    issuer::IssuerArgs,
    join::{JoinTerms, admit},
    log_args::LogArgs,
    process::{Detached, Ended, ProcessId, Started},
    workload_args::WorkloadArgs,
};

/// The longest start of a service: it may read a large store from the disk.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The time for this machine's agent to join.
const JOINS_WITHIN: Duration = Duration::from_secs(600);

/// The largest certificate that is read, in bytes.
const MAX_AUTHORITY: u64 = 64 << 10;

/// The longest wait for a service to end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// The options of a controller's process beside its name and its directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOptions<'a> {
    /// The address that it listens on.
    pub(crate) listen: SocketAddr,
    /// The names by which clients on other machines call it.
    pub(crate) public_names: &'a [String],
    /// The files of its certificate, if it was given one.
    pub(crate) tls: Option<&'a TlsFiles>,
    /// The issuer at which external users log in.
    pub(crate) issuer: Option<&'a IssuerArgs>,
    /// The log that it shares with other controllers.
    pub(crate) log: Option<&'a LogArgs>,
    /// The object store that has its blobs.
    pub(crate) blobs: Option<&'a BlobsArgs>,
}

/// Starts the controller with its data in a directory, and waits until it answers. `at` in the result is its URL.
pub(crate) async fn start_controller(
    name: &ControllerName,
    directory: &ControllerDir,
    options: StartOptions<'_>,
    record: impl FnOnce(&ProcessId) -> Result<()>,
) -> Result<Started> {
    let log = directory.controller_log();
    let mut arguments: Vec<OsString> = words(["controller", "run", "--name", name.as_str()]);
    arguments.extend(words(["--listen", &options.listen.to_string(), "--data"]));
    arguments.push(directory.controller().into());
    for name in options.public_names {
        arguments.extend(words(["--public-name", name]));
    }
    if let Some(TlsFiles { certificate, key }) = options.tls {
        arguments.extend(["--tls-cert".into(), certificate.into(), "--tls-key".into(), key.into()]);
    }
    arguments.extend(options.issuer.map(IssuerArgs::words).unwrap_or_default());
    arguments.extend(options.log.map(LogArgs::words).unwrap_or_default());
    arguments.extend(options.blobs.map(BlobsArgs::words).unwrap_or_default());
    arguments.extend(["--detach".into(), log.clone().into()]);
    Detached { what: "controller", arguments, log: &log, timeout: STARTS_WITHIN }.start(record).await
}

/// Starts this machine's agent, and waits until it has registered. It may join again, in case that it lost its key or the
/// controller has a new authority.
pub(crate) async fn start_agent(
    (name, workloads): (&AgentName, &WorkloadArgs),
    directory: &ControllerDir,
    listen: SocketAddr,
    record: impl FnOnce(&ProcessId) -> Result<()>,
) -> Result<Started> {
    let (log, url) = (directory.agent_log(), format!("https://{}", reachable(listen)));
    let terms = JoinTerms { valid_for: JOINS_WITHIN, again: true };
    let joining = admit(&local_client(directory)?, name, &authority(directory)?, terms).await?;
    let token = directory.agent_token();
    write_file(&token, joining.reveal(), Readers::Owner).map_err(with_source)?;
    let mut arguments: Vec<OsString> =
        words(["agent", "run", "--controller", &url, "--name", name.as_str(), "--data"]);
    arguments.push(directory.agent().into());
    arguments.extend(["--token-file".into(), token.clone().into()]);
    arguments.extend(workloads.words());
    arguments.extend(["--detach".into(), log.clone().into()]);
    let agent = Detached { what: "agent", arguments, log: &log, timeout: STARTS_WITHIN };
    let started = agent.start(record).await;
    // It is worth nothing any more, or soon.
    let _ = std::fs::remove_file(&token);
    started
}

/// Returns the address by which this machine reaches a controller on it.
fn reachable(mut listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    listen
}

/// Waits until the controller has the agent's stream: from then on units run on it.
pub(crate) async fn alive(client: &Client, name: &AgentName) -> Result<()> {
    let deadline = Instant::now() + STARTS_WITHIN;
    let mut pause = Duration::from_millis(5);
    while !client.agents().await?.iter().any(|agent| agent.name == *name && agent.alive) {
        if Instant::now() + pause > deadline {
            return Err(Failure::new(format!(
                "agent {name} is registered, but not connected to the controller"
            )));
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(200));
    }
    Ok(())
}

/// Returns the certificate of the authority that a controller on this machine has made, as PEM text.
pub(crate) fn authority(directory: &ControllerDir) -> Result<String> {
    let path = directory.authority();
    let text = String::from_utf8(input::bytes(&path, MAX_AUTHORITY)?);
    text.explain(|| format!("{}", path.display()))
}

/// Returns the certificates of the authorities by which clients know a controller on this machine, as PEM text: its own,
/// and last that of the certificate that it was given.
pub(crate) fn trusted(directory: &ControllerDir, tls: Option<&TlsFiles>) -> Result<String> {
    let own = authority(directory)?;
    let given = tls.map(|tls| CertificateFiles::from(tls).read()).transpose().map_err(with_source)?;
    Ok(own + given.as_ref().map_or("", GivenCertificate::authority))
}

/// Returns the address that a started controller listens on, whose port its URL tells.
pub(crate) fn listening(listen: SocketAddr, url: &str) -> Result<SocketAddr> {
    let port = url.trim_end_matches('/').rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = port.ok_or_else(|| Failure::new(format!("{url} names no port")))?;
    Ok(SocketAddr::new(listen.ip(), port))
}

/// Ends both, the agent first. Returns the names of those that had to be killed.
pub(crate) async fn end(local: &Local) -> Result<Vec<&'static str>> {
    let mut killed = Vec::new();
    let agent = local.agent.as_ref().map(|agent| ("agent", &agent.process));
    for (what, process) in agent.into_iter().chain([("controller", &local.controller)]) {
        if end_process(process).await? == Ended::Killed {
            killed.push(what);
        }
    }
    Ok(killed)
}

/// Ends a process. It waits on another thread, because a stopping controller waits in turn for this client's
/// connection to close.
pub(crate) async fn end_process(process: &ProcessId) -> Result<Ended> {
    let process = process.clone();
    let ended = tokio::task::spawn_blocking(move || process.end(ENDS_WITHIN)).await;
    ended.explain(|| "cannot wait for a process".to_owned())?
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}
