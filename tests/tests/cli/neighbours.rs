//! Calls of workloads to units on other hosts: two agents, each at an address of its own.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, packed_parts, signal, skipped};
use serde_json::json;

use crate::{containers::debian_image, workloads::until};

/// The agents with their addresses. Their names are their tags as well.
const AGENTS: [(&str, &str); 2] = [("one", "127.0.0.2"), ("two", "127.0.0.3")];

/// The port of the workload of each unit.
const PORT: u16 = 8080;

/// The answer of a workload that is reached.
const REACHED: &str = "404 no such mode";

struct Hosts {
    periapt: Installation,
    driver: &'static str,
    agents: [RunningProcess; 2],
}

fn start(
    periapt: &Installation,
    driver: &str,
    (name, address): (&str, &str),
) -> anyhow::Result<RunningProcess> {
    let log = periapt.path().join(format!("{name}.log"));
    let mut agent =
        periapt.agent_logged(name, &log, ["--workloads", driver, "--address", address, "--tag", name])?;
    ensure!(agent.first_line()? == format!("ready {name}"));
    Ok(agent)
}

impl Hosts {
    fn new(driver: &'static str) -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let [one, two] = AGENTS;
        let agents = [start(&periapt, driver, one)?, start(&periapt, driver, two)?];
        Ok(Self { periapt, driver, agents })
    }

    /// Deploys applications whose units have a server, each on the agent with its tag.
    fn deploy(&self, applications: &[(&str, &str)]) -> anyhow::Result<()> {
        let parts = [("server.wasm", "hostile-workload")];
        let server =
            format!("x-periapt: {{workloads: {{server: {{component: server.wasm, http: {PORT}}}}}}}\n");
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
        // The answer is in chunks, each after a line with its size.
        let (_, answer) =
            log.rsplit_once(" ask ").with_context(|| format!("no answer of {authority} in {log}"))?;
        Ok(answer.to_owned())
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
        *agent = start(&self.periapt, self.driver, *AGENTS.get(which).context("an agent")?)?;
        Ok(())
    }
}

#[test]
fn a_workload_calls_related_units_on_another_host_whatever_is_killed() -> anyhow::Result<()> {
    let mut hosts = Hosts::new("wasm")?;
    hosts.deploy(&[("app", "one"), ("stranger", "one"), ("db", "two")])?;
    for unit in ["app/0", "stranger/0", "db/0"] {
        // Its own server answers once it has started.
        hosts.reaches(unit, &format!("localhost:{PORT}"))?;
    }
    let by_name = format!("db-0:{PORT}");
    hosts.is_refused("app/0", &by_name)?;
    hosts.periapt.ok(["integrate", "app:sink", "db:db"])?;
    hosts.reaches("app/0", &by_name)?;
    hosts.reaches("app/0", &format!("db-0.db-endpoints.test.svc.cluster.local:{PORT}"))?;
    hosts.reaches("db/0", &format!("app-0:{PORT}"))?;

    // Units without a relation, other ports and the agents' own are not reached. An address of the loopback is the unit's own.
    hosts.is_refused("stranger/0", &by_name)?;
    for authority in ["db-0:22", "127.0.0.3:17072"] {
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

/// Returns what a program in the container of a unit writes, or none if it fails.
fn in_container(periapt: &Installation, unit: &str, program: &[&str]) -> anyhow::Result<Option<String>> {
    let done = periapt.run([&["exec", "-u", unit, "--container", "web", "--"], program].concat())?;
    Ok((done.code == Some(0)).then_some(done.stdout))
}

#[test]
fn containers_call_related_units_by_the_names_and_addresses_that_charms_give_them() -> anyhow::Result<()> {
    let hosts = Hosts::new("namespaces")?;
    let periapt = &hosts.periapt;
    let Some(image) = debian_image("pages", &["busybox", "curl"])? else { return Ok(()) };
    for agent in ["one", "two"] {
        let log = fs::read_to_string(periapt.path().join(format!("{agent}.log")))?;
        if let Some(reason) = log.lines().find(|line| line.contains("this host makes no containers")) {
            return skipped(reason);
        }
    }
    let image = format!("image={}", image.display());
    periapt_tests::packed("probe", periapt.path())?;
    for (application, tag) in [("app", "tags=one"), ("stranger", "tags=one"), ("db", "tags=two")] {
        let resource = ["--resource", image.as_str()];
        periapt.ok([&["deploy", "probe.charm", application, "--constraints", tag], &resource[..]].concat())?;
        let unit = format!("{application}/0");
        until("the container runs", || Ok(in_container(periapt, &unit, &["sh", "-c", "true"])?.is_some()))?;
    }
    let serve = format!(
        "mkdir -p /var/pages; echo a page of db >/var/pages/page; exec busybox httpd -f -p 127.0.0.1:{PORT} -h /var/pages"
    );
    let command = format!("sh -c '{serve}'");
    let service = json!({"override": "replace", "command": command, "startup": "enabled"});
    let layer = json!({"services": {"web": service}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
    hosts.act("db/0", &format!("ask web POST /v1/layers {add}"))?;
    hosts.act("db/0", &format!("ask web POST /v1/services {}", json!({"action": "replan"})))?;
    let fetch = |unit: &str, host: &str| {
        let url = format!("http://{host}:{PORT}/page");
        in_container(periapt, unit, &["curl", "--silent", "--fail", "--max-time", "20", &url])
    };
    let gets = |unit: &str, host: &str| -> anyhow::Result<()> {
        let is_page = |page: Option<String>| page.is_some_and(|page| page.contains("a page of db"));
        until(&format!("{unit} gets the page of {host}"), || Ok(is_page(fetch(unit, host)?)))
    };
    gets("db/0", "localhost")?;
    ensure!(fetch("app/0", "db-0")?.is_none(), "they are not related");
    periapt.ok(["integrate", "app:sink", "db:db"])?;
    for host in ["db-0", "db", "db-0.db-endpoints.test.svc.cluster.local"] {
        gets("app/0", host)?;
    }
    ensure!(fetch("app/0", "127.0.0.3")?.is_none(), "the loopback is the container's own");
    for (unit, host) in
        [("stranger/0", "db-0"), ("app/0", "example.com"), ("app/0", "169.254.169.254"), ("app/0", "db-1")]
    {
        ensure!(fetch(unit, host)?.is_none(), "{unit} gets a page of {host}");
    }
    periapt.ok(["remove-relation", "app", "db"])?;
    until("the applications are not related", || Ok(fetch("app/0", "db-0")?.is_none()))
}
