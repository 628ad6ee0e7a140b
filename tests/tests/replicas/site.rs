//! Three controllers of one log in three real etcd servers, each a process with data of its own.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::{EtcdHost, TestEtcd};
use periapt_tests::{Installation, POLL_INTERVAL, network_of};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::hooks::Agent;

/// The hosts, by the names of their controllers.
pub(crate) const HOSTS: [&str; 3] = ["one", "two", "three"];

/// The hosts of a network in which each controller and each server of etcd has a host of its own.
pub(crate) const NETWORK: [&str; 6] = ["one", "two", "three", "etcd-0", "etcd-1", "etcd-2"];

/// The timeout of waits.
pub(crate) const UNTIL: Duration = Duration::from_secs(90);

/// The controllers, each with the client on its host.
pub(crate) struct Site {
    pub(crate) etcd: TestEtcd,
    pub(crate) hosts: Vec<Arc<Installation>>,
    /// The agents that tests have started apart.
    pub(crate) agents: Vec<Agent>,
}

impl Site {
    /// Starts etcd, and three controllers, the first one with these further words.
    pub(crate) fn of_three(more: &[&str]) -> anyhow::Result<Self> {
        let mut site = Self::bootstrapped(more)?;
        site.join("two")?;
        site.join("three")?;
        Ok(site)
    }

    /// Starts etcd, and three controllers on hosts whose wall clocks can be set.
    pub(crate) fn with_clocks() -> anyhow::Result<Self> {
        let host = || Installation::empty()?.with_own_clock();
        let mut site = Self::bootstrapped_on(host()?, &["--no-agent"])?;
        site.join_on(host()?, "two")?;
        site.join_on(host()?, "three")?;
        Ok(site)
    }

    /// Starts etcd, with its data in this directory and with further arguments, and three controllers, on the hosts of
    /// [`NETWORK`].
    pub(crate) fn on_hosts_of_network(data: TempDir, more: &[&str]) -> anyhow::Result<Self> {
        let servers = etcd_hosts().map(|(network, number)| {
            let address = [10, 77, 0, u8::try_from(number)?].into();
            anyhow::Ok(EtcdHost { network: network_of(network), address })
        });
        let etcd = TestEtcd::start_on_in(data, &servers.collect::<anyhow::Result<Vec<_>>>()?, more);
        etcd.ready();
        let on = |host: &str| Ok::<_, anyhow::Error>(Installation::empty()?.in_network(network_of(host)));
        let [first, ..] = HOSTS;
        let (host, log) = (on(first)?, etcd.url().to_string());
        let bootstrap = ["bootstrap", "local", "--no-agent", "--log", &log, "--member", first];
        host.ok(bootstrap.into_iter().chain(["--listen", "10.77.0.1:17070"]))?;
        let mut site = Self { etcd, hosts: vec![Arc::new(host)], agents: Vec::new() };
        for (member, listen) in HOSTS.into_iter().skip(1).zip(["10.77.0.2:17070", "10.77.0.3:17070"]) {
            site.join_listening(on(member)?, member, &["--listen", listen])?;
        }
        Ok(site)
    }

    /// Starts etcd, and the first controller.
    fn bootstrapped(more: &[&str]) -> anyhow::Result<Self> {
        Self::bootstrapped_on(Installation::empty()?, more)
    }

    /// Starts etcd, and the first controller on this host.
    pub(crate) fn bootstrapped_on(first: Installation, more: &[&str]) -> anyhow::Result<Self> {
        Self::bootstrapped_in(TestEtcd::start(3), first, more)
    }

    /// Starts the first controller on this host, with its log in servers of etcd that start.
    pub(crate) fn bootstrapped_in(
        etcd: TestEtcd,
        first: Installation,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        etcd.ready();
        let log = etcd.url().to_string();
        first.ok([&["bootstrap", "local", "--log", &log, "--member", "one"], more].concat())?;
        Ok(Self { etcd, hosts: vec![Arc::new(first)], agents: Vec::new() })
    }

    /// Starts a further controller, with a token of the first one.
    fn join(&mut self, member: &str) -> anyhow::Result<()> {
        self.join_on(Installation::empty()?, member)
    }

    /// Starts a further controller on this host, with a token of the first one.
    pub(crate) fn join_on(&mut self, host: Installation, member: &str) -> anyhow::Result<()> {
        self.join_listening(host, member, &[])
    }

    fn join_listening(&mut self, host: Installation, member: &str, listen: &[&str]) -> anyhow::Result<()> {
        let join = self.admit(&host, member)?;
        host.ok(join.iter().map(String::as_str).chain(listen.iter().copied()))?;
        let again =
            host.refused(join.iter().map(|word| if word == "local" { "other" } else { word.as_str() }))?;
        ensure!(again.contains("this token admits no controller of this name"), "{again}");
        ensure!(
            !host.path().join("data/controllers/other").exists(),
            "nothing is left of the second attempt"
        );
        self.hosts.push(Arc::new(host));
        Ok(())
    }

    /// Admits a further controller, and writes its token into the directory of its host. Returns the words by which it
    /// joins as `local`.
    pub(crate) fn admit(&self, host: &Installation, member: &str) -> anyhow::Result<Vec<String>> {
        let first = self.host(0)?;
        let token = host.path().join("token");
        let token = token.to_str().context("a path")?;
        first.ok(["controller-token", member, "--output", token])?;
        let shown = controller(first)?;
        let url = shown.pointer("/details/url").and_then(Value::as_str).context("a URL")?;
        let join = ["controller", "join", "local", "--controller", url, "--token-file", token];
        Ok(join.into_iter().chain(["--member", member]).map(str::to_owned).collect())
    }

    pub(crate) fn host(&self, number: usize) -> anyhow::Result<&Installation> {
        self.hosts.get(number).map(Arc::as_ref).context("a host")
    }

    /// Starts an agent on each of the first two hosts.
    pub(crate) fn start_agents(&mut self) -> anyhow::Result<()> {
        for (host, name) in self.hosts.iter().zip(["first", "second"]) {
            self.agents.push(Agent::join(host, name)?);
        }
        Ok(())
    }

    /// Returns the number of the host whose controller leads, as this host knows it.
    pub(crate) fn leader(&self, asked: usize) -> anyhow::Result<Option<usize>> {
        let shown = controller(self.host(asked)?)?;
        let members = shown.pointer("/details/controller-machines").and_then(Value::as_object);
        let members = members.context("members")?;
        let leads = |name: &&str| {
            members.get(*name).is_some_and(|member| member.get("role").is_some_and(|role| role == "leader"))
        };
        Ok(HOSTS.iter().position(leads))
    }

    /// Returns the number of the host whose controller leads, as the first host knows it that knows one.
    pub(crate) fn known_leader(&self) -> anyhow::Result<usize> {
        let mut leader = None;
        until("a controller knows who leads", || {
            leader = (0..self.hosts.len()).find_map(|asked| self.leader(asked).ok().flatten());
            Ok(leader.is_some())
        })?;
        leader.context("a leader")
    }

    /// Waits until another controller leads than that of a host, as a host beside it knows.
    pub(crate) fn another_leads(&self, than: usize) -> anyhow::Result<()> {
        let asked = (than + 1) % HOSTS.len();
        until("another controller leads", || {
            let leader = self.leader(asked).ok().flatten();
            Ok(leader.is_some_and(|leader| leader != than))
        })
    }

    /// Returns true if a controller leads and shows that all others are away.
    pub(crate) fn leader_is_alone(&self) -> anyhow::Result<bool> {
        for host in &self.hosts {
            // One that follows may not answer while it does not reach the others.
            let Ok(shown) = controller(host) else { continue };
            let members = shown.pointer("/details/controller-machines").and_then(Value::as_object);
            let members = members.context("members")?;
            let is_away = |member: &&Value| member.get("away") == Some(&Value::Bool(true));
            if members.len() == self.hosts.len()
                && members.values().filter(is_away).count() + 1 == members.len()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the hosts of etcd's servers in [`NETWORK`], each with its number in the network, which begins with 1.
pub(crate) fn etcd_hosts() -> impl Iterator<Item = (&'static str, usize)> {
    NETWORK.into_iter().zip(1..).skip(HOSTS.len())
}

/// Returns the details of a host's controller.
pub(crate) fn controller(host: &Installation) -> anyhow::Result<Value> {
    let shown: Value = serde_json::from_str(&host.ok(["show-controller", "--format", "json"])?)?;
    shown.get("local").cloned().context("the controller")
}

/// Sends a signal to a host's controller, and leaves its agent alone.
pub(crate) fn end(host: &Installation, signal: Signal) -> anyhow::Result<()> {
    let process = i32::try_from(host.controller_process("local")?)?;
    Ok(kill_process(Pid::from_raw(process).context("a process")?, signal)?)
}

/// Returns the directory of a host's blobs.
pub(crate) fn blobs(host: &Installation) -> PathBuf {
    host.path().join("data/controllers/local/controller/blobs")
}

/// Returns the number of archives of charms on a host.
pub(crate) fn archives(host: &Installation) -> anyhow::Result<usize> {
    let mut count = 0;
    for directory in std::fs::read_dir(blobs(host)).into_iter().flatten() {
        let directory = directory?.path();
        // The names of finished blobs have no extension and no mark of an unfinished one.
        for file in std::fs::read_dir(directory).into_iter().flatten() {
            count += usize::from(file?.file_name().len() == 64);
        }
    }
    Ok(count)
}

pub(crate) fn models(host: &Installation) -> anyhow::Result<Vec<String>> {
    let shown: Value = serde_json::from_str(&host.ok(["models", "--format", "json"])?)?;
    let models = shown.get("models").and_then(Value::as_array).context("a list of models")?;
    let mut names: Vec<_> =
        models.iter().filter_map(|model| Some(model.get("short-name")?.as_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < UNTIL, "{what} did not come to hold");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}
