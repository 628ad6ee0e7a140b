//! The network of three hosts, which a test makes for itself and which ends with it.

use std::process::Command;

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess};
use serde_json::Value;

/// Set in the test's second process, which has the network.
const INSIDE: &str = "PERIAPT_SITE";

/// The hosts, in the order of their addresses. The controller is on the first.
pub(crate) const HOSTS: [&str; 3] = ["north", "south", "east"];

/// The options of `unshare` for a network in which this user may do everything.
const OWN: [&str; 6] = ["--user", "--map-root-user", "--net", "--mount", "--fork", "--kill-child"];

/// Connects the hosts by a bridge.
const NETWORK: &str = "set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add name lan type bridge
ip link set lan up
number=0
for host in north south east; do
  number=$((number + 1))
  ip netns add $host
  ip link add name $host type veth peer name eth0 netns $host
  ip link set $host master lan
  ip link set $host up
  ip -n $host addr add 10.77.0.$number/24 dev eth0
  ip -n $host link set lo up
  ip -n $host link set eth0 up
done";

/// A controller on the first host with an agent beside it, and agents on the other hosts.
pub(crate) struct Site {
    /// The first host's installation.
    pub(crate) north: Installation,
    /// The agents of the other hosts, in order.
    agents: Vec<RunningProcess>,
}

/// Runs a test, given by its full name, in a network of its own. Prints the reason and does nothing if none can be made.
#[expect(clippy::print_stderr, reason = "who runs the tests is told what was not tried, and why")]
pub(crate) fn on_a_site(
    test: &str,
    body: impl FnOnce(&mut Site) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        run("sh", &["-c", NETWORK])?;
        return body(&mut Site::started()?);
    }
    let tried = Command::new("unshare").args(OWN).args(["sh", "-c", NETWORK]).output()?;
    if !tried.status.success() {
        let reason = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        // In CI these tests must run.
        ensure!(std::env::var_os("CI").is_none(), "no network can be made here: {reason}");
        eprintln!("SKIPPED {test}: no network can be made here: {reason}");
        return Ok(());
    }
    let mut again = Command::new("unshare");
    again.args(OWN).arg(std::env::current_exe()?).args(["--exact", test, "--nocapture"]);
    let done = again.env(INSIDE, "1").output()?;
    let (output, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    ensure!(done.status.success() && output.contains("1 passed"), "{output}\n{errors}");
    Ok(())
}

impl Site {
    fn started() -> anyhow::Result<Self> {
        let north = on("north")?;
        let listen = ["--listen", "10.77.0.1:17070", "--agent-name", "north"];
        north.ok(["bootstrap", "local"].into_iter().chain(listen))?;
        north.ok(["add-model", "test"])?;
        let mut site = Self { north, agents: Vec::new() };
        for host in &HOSTS[1..] {
            let agent = site.agent(host)?;
            site.agents.push(agent);
        }
        Ok(site)
    }

    /// Starts the agent of a host, which joins, and waits until it has registered.
    pub(crate) fn agent(&self, host: &str) -> anyhow::Result<RunningProcess> {
        let mut agent = self.north.agent_elsewhere(&network(host), host)?;
        ensure!(agent.first_line()? == format!("ready {host}"), "{host} has not registered");
        Ok(agent)
    }

    /// Cuts a host off, or connects it again.
    pub(crate) fn link(host: &str, state: &str) -> anyhow::Result<()> {
        run("ip", &["link", "set", host, state])
    }

    /// Ends a host at once: nothing of it runs any more, and nobody is told.
    pub(crate) fn kill(&mut self, host: &str) -> anyhow::Result<()> {
        Self::link(host, "down")?;
        let number = HOSTS[1..].iter().position(|name| *name == host).context("another host")?;
        let agent = self.agents.remove(number);
        agent.end("KILL").map(drop)
    }

    /// Returns the state of an agent.
    pub(crate) fn is_alive(&self, host: &str) -> anyhow::Result<bool> {
        let agents = self.north.json(["agents"])?;
        let agent = agents.as_array().into_iter().flatten().find(|agent| agent["name"] == host);
        agent.and_then(|agent| agent["alive"].as_bool()).with_context(|| format!("{host} in {agents}"))
    }

    /// Waits until an agent is alive, or is not.
    pub(crate) fn wait(&self, host: &str, alive: bool) -> anyhow::Result<()> {
        let holds = |agents: &Value| {
            let mut agents = agents.as_array().into_iter().flatten();
            agents.any(|agent| agent["name"] == host && agent["alive"] == alive)
        };
        self.north.json_until(&["agents"], holds).map(drop)
    }
}

/// Returns an installation on a host.
pub(crate) fn on(host: &str) -> anyhow::Result<Installation> {
    Ok(Installation::empty()?.in_network(network(host)))
}

fn network(host: &str) -> String {
    format!("/run/netns/{host}")
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let done = Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    ensure!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}
