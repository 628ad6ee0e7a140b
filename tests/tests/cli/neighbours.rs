//! Calls of workloads to units on other hosts: two agents, each at an address of its own.

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, packed_parts, signal};

use crate::workloads::until;

/// The agents with their addresses. Their names are their tags as well.
const AGENTS: [(&str, &str); 2] = [("one", "127.0.0.2"), ("two", "127.0.0.3")];

/// The port of the workload of each unit.
const PORT: u16 = 8080;

/// The answer of a workload that is reached.
const REACHED: &str = "404 no such mode";

struct Hosts {
    periapt: Installation,
    agents: [RunningProcess; 2],
}

fn start(periapt: &Installation, (name, address): (&str, &str)) -> anyhow::Result<RunningProcess> {
    let log = periapt.path().join(format!("{name}.log"));
    let mut agent =
        periapt.agent_logged(name, &log, ["--workloads", "wasm", "--address", address, "--tag", name])?;
    ensure!(agent.first_line()? == format!("ready {name}"));
    Ok(agent)
}

impl Hosts {
    fn new() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let [one, two] = AGENTS;
        let agents = [start(&periapt, one)?, start(&periapt, two)?];
        Ok(Self { periapt, agents })
    }

    /// Deploys applications whose units have a server, each on the agent with its tag.
    fn deploy(&self, applications: &[(&str, &str)]) -> anyhow::Result<()> {
        let parts = [("server.wasm", "hostile-workload")];
        let server = format!("x-periapt: {{workloads: {{server: {{component: server.wasm, http: {PORT}}}}}}}\n");
        let archive =
            packed_parts("probe", "calls", self.periapt.path(), &parts, |text| format!("{text}{server}"))?;
        let archive = archive.to_str().context("a path")?;
        for (application, tag) in applications {
            let constraints = format!("tags={tag}");
            self.periapt.ok(["deploy", archive, application, "--constraints", &constraints])?;
        }
        Ok(())
    }

    fn act(&self, unit: &str, step: &str) -> anyhow::Result<()> {
        let (application, _) = unit.split_once('/').context("a unit")?;
        self.periapt.ok(["config", application, &format!("script=act: {step}")])?;
        self.periapt.ok(["run", unit, "act"])?;
        Ok(())
    }

    /// Lets the workload of a unit ask another server, and returns what the unit logs of the answer.
    fn asks(&self, unit: &str, authority: &str) -> anyhow::Result<String> {
        self.act(unit, &format!("ask {PORT} GET /ask?{authority}"))?;
        let log = self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", unit])?;
        let line = log.lines().rev().find_map(|line| Some(line.split_once(" ask ")?.1.to_owned()));
        line.with_context(|| format!("no answer of {authority} in {log}"))
    }

    fn reaches(&self, unit: &str, authority: &str) -> anyhow::Result<()> {
        until(&format!("{unit} reaches {authority}"), || Ok(self.asks(unit, authority)?.contains(REACHED)))
    }

    fn is_refused(&self, unit: &str, authority: &str) -> anyhow::Result<()> {
        let answer = self.asks(unit, authority)?;
        ensure!(answer.contains(": 200 ") && !answer.contains(REACHED), "{unit} to {authority}: {answer}");
        Ok(())
    }

    fn kill_and_start(&mut self, which: usize) -> anyhow::Result<()> {
        let agent = self.agents.get_mut(which).context("an agent")?;
        signal(agent.id(), "KILL")?;
        *agent = start(&self.periapt, *AGENTS.get(which).context("an agent")?)?;
        Ok(())
    }
}

#[test]
fn a_workload_calls_related_units_on_another_host_whatever_is_killed() -> anyhow::Result<()> {
    let mut hosts = Hosts::new()?;
    hosts.deploy(&[("app", "one"), ("stranger", "one"), ("db", "two")])?;
    for unit in ["app/0", "stranger/0", "db/0"] {
        // Its own server answers once it has started.
        hosts.reaches(unit, &format!("localhost:{PORT}"))?;
    }
    let [by_name, by_address] = ["db-0", "127.0.0.3"].map(|host| format!("{host}:{PORT}"));
    hosts.is_refused("app/0", &by_name)?;
    hosts.periapt.ok(["integrate", "app:sink", "db:db"])?;
    hosts.reaches("app/0", &by_name)?;
    for host in ["db", "db-0.db-endpoints.test.svc.cluster.local"] {
        hosts.reaches("app/0", &format!("{host}:{PORT}"))?;
    }
    hosts.reaches("db/0", &format!("app-0:{PORT}"))?;

    // An address stands for the units that have the port open.
    hosts.is_refused("app/0", &by_address)?;
    hosts.act("db/0", &format!("open-port {PORT}/tcp"))?;
    hosts.reaches("app/0", &by_address)?;

    // Units without a relation, other ports and the agents' own are not reached.
    hosts.is_refused("stranger/0", &by_name)?;
    hosts.is_refused("stranger/0", &by_address)?;
    for authority in ["db-0:22", "db-1:8080", "127.0.0.3:17072", "127.0.0.1:17070"] {
        hosts.is_refused("app/0", authority)?;
    }

    // The called unit's keeper dies, and then the calling unit's.
    hosts.kill_and_start(1)?;
    hosts.reaches("app/0", &by_name)?;
    hosts.kill_and_start(0)?;
    hosts.reaches("app/0", &format!("localhost:{PORT}"))?;
    hosts.reaches("app/0", &by_name)?;

    hosts.periapt.ok(["remove-relation", "app", "db"])?;
    until("the applications are not related", || Ok(!hosts.asks("app/0", &by_name)?.contains(REACHED)))
}
