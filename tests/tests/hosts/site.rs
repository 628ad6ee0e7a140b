//! The network of three hosts, which a test makes for itself and which ends with it.

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, Link, RunningProcess, in_own_network, network_of, set_link};
use serde_json::Value;

/// The hosts, in the order of their addresses. The controller is on the first.
pub(crate) const HOSTS: [&str; 3] = ["north", "south", "east"];

/// A controller on the first host with an agent beside it, and agents on the other hosts.
pub(crate) struct Site {
    /// The first host's installation.
    pub(crate) north: Installation,
    /// The agents of the other hosts, in order.
    agents: Vec<RunningProcess>,
}

/// Runs a test, given by its full name, in a network of its own. Prints the reason and does nothing if none can be made.
pub(crate) fn on_a_site(
    test: &str,
    body: impl FnOnce(&mut Site) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    on_a_site_with(test, &[], body)
}

/// Does so with more options of each agent.
pub(crate) fn on_a_site_with(
    test: &str,
    options: &[&str],
    body: impl FnOnce(&mut Site) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    in_own_network(test, &HOSTS, || body(&mut Site::started(options)?))
}

impl Site {
    fn started(options: &[&str]) -> anyhow::Result<Self> {
        let north = on("north")?;
        let bootstrap = ["bootstrap", "local", "--listen", "10.77.0.1:17070", "--agent-name", "north"];
        north.ok([&bootstrap[..], options].concat())?;
        north.ok(["add-model", "test"])?;
        let mut site = Self { north, agents: Vec::new() };
        for host in &HOSTS[1..] {
            let agent = site.agent(host, options)?;
            site.agents.push(agent);
        }
        Ok(site)
    }

    /// Starts the agent of a host, which joins, and waits until it has registered.
    fn agent(&self, host: &str, options: &[&str]) -> anyhow::Result<RunningProcess> {
        let mut agent = self.north.agent_elsewhere(&network_of(host), host, options.iter().copied())?;
        ensure!(agent.first_line()? == format!("ready {host}"), "{host} has not registered");
        Ok(agent)
    }

    /// Ends a host at once: nothing of it runs any more, and nobody is told.
    pub(crate) fn kill(&mut self, host: &str) -> anyhow::Result<()> {
        set_link(host, Link::Down)?;
        let number = HOSTS[1..].iter().position(|name| *name == host).context("another host")?;
        let agent = self.agents.remove(number);
        agent.end("KILL").map(drop)
    }

    /// Returns the process of a host's agent.
    pub(crate) fn agent_process(&self, host: &str) -> anyhow::Result<u32> {
        match HOSTS.iter().position(|name| *name == host).context("a host")? {
            0 => self.north.agent_process("local"),
            number => Ok(self.agents.get(number - 1).context("an agent")?.id()),
        }
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
    Ok(Installation::empty()?.in_network(network_of(host)))
}

/// Returns the host of a unit.
pub(crate) fn host_of(status: &Value, unit: &str) -> anyhow::Result<String> {
    let application = unit.split('/').next().unwrap_or(unit);
    let place = format!("/applications/{application}/units/{}/machine", unit.replace('/', "~1"));
    let machine = status.pointer(&place).and_then(Value::as_str).context("a machine")?;
    let host = status.pointer(&format!("/machines/{machine}/instance-id")).and_then(Value::as_str);
    Ok(host.with_context(|| format!("the host of {unit} in {status}"))?.to_owned())
}
