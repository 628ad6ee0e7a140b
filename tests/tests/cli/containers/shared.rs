//! Containers of one unit share their network, as those of a pod in Kubernetes do, and its WebAssembly workloads are reached
//! in it.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_tests::{packed_changed, packed_parts, signal};
use serde_json::json;

use super::Scene;
use crate::workloads::{processes, until};

/// A request for the page of a server.
const REQUEST: &str = "printf 'GET /page HTTP/1.0\\r\\n\\r\\n' | nc";

impl Scene {
    /// Runs a request in a container, and returns what it prints.
    fn requests(&self, unit: &str, container: &str, server: &str) -> anyhow::Result<String> {
        let script = format!("{REQUEST} {server}");
        let run = ["exec", "--unit", unit, "--container", container, "--", "sh", "-c", &script];
        Ok(self.periapt.run(run)?.stdout)
    }

    fn requests_until(&self, (unit, container): (&str, &str), server: &str) -> anyhow::Result<()> {
        until(&format!("{container} of {unit} gets the page of {server}"), || {
            Ok(self.requests(unit, container, server)?.contains("one"))
        })
    }

    /// Fetches a page in a container, and returns what it prints.
    fn fetches(&self, unit: &str, url: &str) -> anyhow::Result<String> {
        let (server, path) =
            url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("a URL")?;
        let (host, port) = server.split_once(':').context("a port")?;
        // A server may take the end of what its client says for the end of the connection.
        let request = format!("printf 'GET /{path} HTTP/1.0\\r\\nHost: {server}\\r\\n\\r\\n'; sleep 1");
        self.runs(unit, &format!("({request}) | nc {host} {port}"))
    }

    fn fetches_until(&self, unit: &str, url: &str, expected: &str) -> anyhow::Result<()> {
        until(&format!("a container of {unit} gets {expected:?} of {url}"), || {
            Ok(self.fetches(unit, url)?.contains(expected))
        })
    }

    /// Runs a script in a container, and returns what it prints.
    fn runs(&self, unit: &str, script: &str) -> anyhow::Result<String> {
        let run = ["exec", "--unit", unit, "--container", "web", "--", "sh", "-c", script];
        Ok(self.periapt.run(run)?.stdout)
    }
}

#[test]
fn a_container_and_a_webassembly_workload_of_its_unit_reach_each_other_at_localhost() -> anyhow::Result<()> {
    let Some(scene) = Scene::with_drivers("namespaces,wasm")? else { return Ok(()) };
    let both = |text: &str| {
        format!("{text}x-periapt:\n  workloads:\n    page:\n      component: page.wasm\n      http: 8081\n")
    };
    let parts = [("page.wasm", "web-page-server")];
    let charm = packed_parts("probe", "both", scene.periapt.path(), &parts, both)?;
    let charm = charm.to_str().context("a path")?;
    scene.periapt.ok(["deploy", charm, "-n", "2", "--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    scene.serve()?;
    scene.fetches_until("probe/0", "http://127.0.0.1:8081/", "no title")?;

    // The page has what the container's server says, which the workload finds at localhost, too.
    scene.runs("probe/0", "echo a container says so >/srv/index.html")?;
    let environment = json!({"TITLE": "unit 0", "NOTES": "localhost:8080"});
    let layer = json!({"services": {"page": {"override": "merge", "environment": environment}}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "page", "format": "yaml", "layer": layer});
    let answer = scene.ask(&format!("page POST /v1/layers {add}"))?;
    ensure!(answer.contains(": 200 "), "{answer}");
    let answer = scene.ask(&format!("page POST /v1/services {}", json!({"action": "replan"})))?;
    ensure!(answer.contains(": 202 "), "{answer}");
    for url in ["http://127.0.0.1:8081/", "http://localhost:8081/"] {
        scene.fetches_until("probe/0", url, "unit 0\n\na container says so")?;
    }
    // The charm reaches both, and the other unit has its own.
    scene.ask_until("8081 GET /", |answer| answer.contains(": 200 "))?;
    scene.ask_until("8080 GET /page", |answer| answer.contains(": 200 one"))?;
    scene.fetches_until("probe/1", "http://127.0.0.1:8081/", "no title")?;
    let elsewhere = scene.fetches("probe/1", "http://127.0.0.1:8080/page")?;
    ensure!(!elsewhere.contains("one"), "{elsewhere}");
    let taken = scene.runs("probe/0", "httpd -p 127.0.0.1:8081 -h /srv 2>&1; echo ended with $?")?;
    ensure!(taken.contains("in use") && !taken.contains("ended with 0"), "{taken}");

    // A workload that begins anew is found where it was, and the containers go on.
    let before = scene.boot_id("")?;
    let runs_page = |pod: &&u32| {
        let command = fs::read_to_string(format!("/proc/{pod}/cmdline")).unwrap_or_default();
        command.contains("--private-ports")
    };
    let pods = scene.pods()?;
    ensure!(pods.iter().filter(runs_page).count() == 2, "one workload of each unit: {pods:?}");
    for pod in pods.iter().filter(runs_page) {
        signal(*pod, "KILL")?;
    }
    scene.fetches_until("probe/0", "http://127.0.0.1:8081/", "no title")?;
    assert_eq!(scene.boot_id("")?, before, "the container goes on");

    scene.periapt.ok(["remove-application", "probe", "--no-prompt"])?;
    until("all pods have ended", || Ok(scene.pods()?.is_empty()))?;
    Ok(())
}

#[test]
fn a_container_gets_the_numbers_of_a_related_units_webassembly_workload() -> anyhow::Result<()> {
    let Some(scene) = Scene::with_drivers("namespaces,wasm")? else { return Ok(()) };
    let parts = [("web.wasm", "web-page-server")];
    let page = packed_parts("web-page", "numbers", scene.periapt.path(), &parts, str::to_owned)?;
    let page = page.to_str().context("a path")?;
    let scrapes =
        |text: &str| text.replace("requires:\n", "requires:\n  targets:\n    interface: metrics-address\n");
    let charm = packed_changed("probe", "scrapes", scene.periapt.path(), scrapes)?;
    let charm = charm.to_str().context("a path")?;
    scene.periapt.ok(["deploy", page, "--config", "title=Two words", "--config", "text=four"])?;
    scene.periapt.ok(["deploy", charm, "--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    scene.periapt.ok_until(&["status"], |status| status.contains("Two words"))?;
    let numbers = "http://web-page-0:8080/metrics";
    let stranger = scene.fetches("probe/0", numbers)?;
    ensure!(!stranger.contains("web_page"), "without a relation: {stranger}");
    scene.periapt.ok(["integrate", "probe:targets", "web-page:metrics"])?;
    scene.fetches_until("probe/0", numbers, "web_page_text_bytes 4")
}

#[test]
fn a_container_reaches_the_server_of_another_one_of_its_unit_at_localhost() -> anyhow::Result<()> {
    let Some(scene) = Scene::new()? else { return Ok(()) };
    let two = |text: &str| {
        let web = "  web:\n    resource: image\n";
        text.replace(web, &format!("{web}  side:\n    resource: image\n"))
    };
    let charm = packed_changed("probe", "two-containers", scene.periapt.path(), two)?;
    let charm = charm.to_str().context("a path")?;
    scene.periapt.ok(["deploy", charm, "-n", "2", "--resource", "image=one.tar"])?;
    scene.boot_id("")?;
    scene.serve()?;
    scene.requests_until(("probe/0", "side"), "127.0.0.1 8080")?;
    // The other unit has a network of its own, and reaches the server by the unit's name, from each container.
    let elsewhere = scene.requests("probe/1", "side", "127.0.0.1 8080")?;
    ensure!(!elsewhere.contains("one"), "{elsewhere}");
    for container in ["side", "web"] {
        scene.requests_until(("probe/1", container), "probe-0 8080")?;
    }

    // A container begins anew, and finds the others where they were.
    let servers = processes(&[&scene.server()])?;
    let guards = scene.pods()?;
    ensure!(guards.len() == 4, "two containers of two units: {guards:?}");
    for pod in &guards {
        let command = fs::read_to_string(format!("/proc/{pod}/cmdline"))?;
        ensure!(command.contains("--unit-network"), "{command}");
    }
    let before = scene.boot_id("")?;
    let of_server = servers.first().context("a server")?;
    for pod in guards.iter().filter(|pod| !is_above(**pod, *of_server)) {
        signal(*pod, "KILL")?;
    }
    scene.requests_until(("probe/0", "side"), "127.0.0.1 8080")?;
    scene.requests_until(("probe/1", "side"), "probe-0 8080")?;
    assert_eq!(scene.boot_id("")?, before, "the server's container goes on");

    scene.periapt.ok(["remove-application", "probe", "--no-prompt"])?;
    until("all pods have ended", || Ok(scene.pods()?.is_empty()))?;
    let networks = || -> anyhow::Result<usize> {
        Ok(fs::read_dir(scene.periapt.path().join("worker/pod-locks"))?.count())
    };
    until("nothing of the networks is left", || Ok(networks()? == 0))?;
    Ok(())
}

/// Returns true if a process is an ancestor of another one.
fn is_above(ancestor: u32, process: u32) -> bool {
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    std::iter::successors(Some(process), |pid| parent(*pid)).any(|pid| pid == ancestor)
}
