//! WebAssembly workloads beside units: agents that run them, or do not, and charms that configure them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, packed_parts, signal};
use serde_json::Value;

use crate::workloads::{children, until};

/// The option of an agent that runs them.
const WASM: [&str; 2] = ["--workloads", "wasm"];

/// An installation with one agent, and what that logs.
struct Scene {
    periapt: Installation,
    agent: RunningProcess,
}

impl Scene {
    fn new(options: &[&str]) -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let log = periapt.path().join("worker.log");
        let mut agent = periapt.agent_logged("worker", &log, options.iter().copied())?;
        ensure!(agent.first_line()? == "ready worker");
        Ok(Self { periapt, agent })
    }

    fn log(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.periapt.path().join("worker.log"))?)
    }

    fn archive(&self, edition: &str, change: impl FnOnce(&str) -> String) -> anyhow::Result<PathBuf> {
        let parts = [("web.wasm", "web-page-server")];
        packed_parts("web-page", edition, self.periapt.path(), &parts, change)
    }

    fn deploy(&self, archive: &Path, more: &[&str]) -> anyhow::Result<()> {
        let archive = archive.to_str().context("a path")?;
        self.periapt.ok([&["deploy", archive], more].concat()).map(drop)
    }

    /// Waits until so many units have a status message.
    fn shows(&self, message: &str, units: usize) -> anyhow::Result<()> {
        let shown = |status: &str| status.matches(message).count() >= units;
        self.periapt.ok_until(&["status"], shown).map(drop)
    }

    /// Lets a unit fetch its own page.
    fn page(&self, unit: &str) -> anyhow::Result<String> {
        let task = self.periapt.json(["run", unit, "page"])?;
        let task = task.as_object().and_then(|tasks| tasks.values().next()).context("a task")?;
        let page = task.pointer("/results/page").and_then(Value::as_str);
        Ok(page.with_context(|| task.to_string())?.to_owned())
    }

    fn serves(&self, unit: &str, page: &str) -> anyhow::Result<()> {
        until(&format!("{unit} serves {page:?}"), || {
            Ok(self.page(unit).is_ok_and(|found| found.trim_end() == page))
        })
    }

    fn pods(&self) -> anyhow::Result<Vec<u32>> {
        children(self.agent.id(), &["agent pod --keeper --driver wasm"])
    }

    /// Returns the processes of workloads.
    fn workloads(&self) -> anyhow::Result<Vec<u32>> {
        let mut found = Vec::new();
        for pod in self.pods()? {
            found.extend(children(pod, &["agent workload"])?);
        }
        Ok(found)
    }
}

#[test]
fn units_serve_their_pages_on_one_port_and_come_back_whatever_is_killed() -> anyhow::Result<()> {
    let scene = Scene::new(&WASM)?;
    let archive = scene.archive("first", str::to_owned)?;
    scene.deploy(&archive, &["-n", "2", "--config", "title=One", "--config", "text=a \"text\""])?;
    scene.shows("One", 2)?;
    for unit in ["web-page/0", "web-page/1"] {
        scene.serves(unit, "One\na \"text\"")?;
    }
    // Each server is a process of its own. Both have the same port: it is none of the host's.
    let workloads = scene.workloads()?;
    ensure!((scene.pods()?.len(), workloads.len()) == (2, 2), "{workloads:?}");

    // A setting reaches the environment, and so the process, and the files.
    scene.periapt.ok(["config", "web-page", "title=Two: {\"x\"}", "text=another"])?;
    for unit in ["web-page/0", "web-page/1"] {
        scene.serves(unit, "Two: {\"x\"}\nanother")?;
    }

    // The server dies, and is started again with the same plan.
    let workloads = scene.workloads()?;
    for pid in &workloads {
        signal(*pid, "KILL")?;
    }
    scene.serves("web-page/0", "Two: {\"x\"}\nanother")?;
    scene.serves("web-page/1", "Two: {\"x\"}\nanother")?;
    ensure!(scene.workloads()?.iter().all(|pid| !workloads.contains(pid)));

    // The pod dies, with all that it was told: the charm is told of the next one, and tells it again.
    let pods = scene.pods()?;
    signal(*pods.first().context("no pod")?, "KILL")?;
    until("another pod has begun", || Ok(scene.pods()?.len() == 2 && scene.pods()? != pods))?;
    scene.serves("web-page/0", "Two: {\"x\"}\nanother")?;
    scene.serves("web-page/1", "Two: {\"x\"}\nanother")?;
    let told = |unit: &str| -> anyhow::Result<usize> {
        Ok(scene.periapt.ok(["hooks", unit])?.matches("web-pebble-ready").count())
    };
    ensure!(told("web-page/0")? + told("web-page/1")? == 3);

    // Units go with all their processes and files.
    scene.periapt.ok(["remove-application", "web-page", "--no-prompt"])?;
    until("no pod is left", || Ok(scene.pods()?.is_empty()))?;
    let left = || Ok(fs::read_dir(scene.periapt.path().join("worker/pods"))?.count() == 0);
    until("no file of a pod is left", left)?;
    Ok(())
}

#[test]
fn a_refresh_runs_the_workload_of_the_new_charm() -> anyhow::Result<()> {
    let scene = Scene::new(&WASM)?;
    scene.deploy(&scene.archive("first", str::to_owned)?, &["--config", "title=One"])?;
    scene.shows("One", 1)?;
    let pods = scene.pods()?;
    // The same component under another name, as a part of another charm.
    let parts = [("other.wasm", "web-page-server")];
    let change = |text: &str| text.replace("component: web.wasm", "component: other.wasm");
    let archive = packed_parts("web-page", "second", scene.periapt.path(), &parts, change)?;
    scene.periapt.ok(["refresh", "web-page", "--path", archive.to_str().context("a path")?])?;
    until("another pod has begun", || Ok(scene.pods()?.len() == 1 && scene.pods()? != pods))?;
    scene.serves("web-page/0", "One\nNothing is written here yet.")?;
    let pod = *scene.pods()?.first().context("no pod")?;
    let line = fs::read(format!("/proc/{pid}/cmdline", pid = pod))?;
    ensure!(String::from_utf8_lossy(&line).contains("other.wasm:8080"));
    Ok(())
}

#[test]
fn an_agent_without_the_driver_says_so_to_operators_and_charms() -> anyhow::Result<()> {
    let scene = Scene::new(&[])?;
    scene.deploy(&scene.archive("first", str::to_owned)?, &[])?;
    let reason = "this agent runs no WebAssembly workloads: it needs `--workloads wasm`";
    scene.shows(reason, 1)?;
    let log = scene.log()?;
    let line =
        log.lines().find(|line| line.contains("a workload is not run")).with_context(|| log.clone())?;
    ensure!(line.contains("web-page/0") && line.contains(reason), "{line}");
    ensure!(scene.page("web-page/0").is_err() && children(scene.agent.id(), &["agent pod"])?.is_empty());
    Ok(())
}

#[test]
fn a_workload_that_does_not_run_says_why_and_a_layer_can_mend_it() -> anyhow::Result<()> {
    let scene = Scene::new(&WASM)?;
    // This command fails without an argument.
    let parts = [("job.wasm", "hostile-workload")];
    let change = |text: &str| format!("{text}x-periapt: {{workloads: {{job: {{component: job.wasm}}}}}}\n");
    let archive = packed_parts("probe", "job", scene.periapt.path(), &parts, change)?;
    scene.deploy(&archive, &[])?;
    until("the agent's log says why", || {
        let log = scene.log()?;
        let told = log.lines().find(|line| line.contains("a service of a workload ended"));
        Ok(told.is_some_and(|line| line.contains("probe/0") && line.contains("it ended with code 1")))
    })?;
    let ask = |request: &str| -> anyhow::Result<String> {
        scene.periapt.ok(["config", "probe", &format!("script=act: ask {request}")])?;
        scene.periapt.ok(["run", "probe/0", "act"])?;
        let log = scene.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        let answer = log.lines().rev().find_map(|line| Some(line.split_once(" ask ")?.1.to_owned()));
        answer.with_context(|| log.clone())
    };
    let plan = ask("job GET /v1/plan?format=yaml")?;
    ensure!(plan.contains("job") && plan.contains("enabled"), "{plan}");
    let image = ask("web GET /v1/system-info")?;
    ensure!(image.contains("this agent runs WebAssembly workloads alone, and no containers"), "{image}");
    let layer = serde_json::json!({
        "action": "add", "combine": true, "label": "l", "format": "yaml",
        "layer": "services: {job: {override: merge, command: job sleep}}",
    });
    let added = ask(&format!("job POST /v1/layers {layer}"))?;
    ensure!(added.contains(": 200 "), "{added}");
    ask("job POST /v1/services {\"action\": \"replan\"}")?;
    until("it runs", || Ok(ask("job GET /v1/services")?.contains("\"current\":\"active\"")))?;
    ensure!(scene.workloads()?.len() == 1);
    Ok(())
}

#[test]
fn an_open_port_that_agents_do_not_forward_is_in_status_while_it_is_exposed() -> anyhow::Result<()> {
    let scene = Scene::new(&WASM)?;
    let change = |text: &str| format!("{text}x-periapt: {{workloads: {{job: {{component: job.wasm}}}}}}\n");
    let parts = [("job.wasm", "hostile-workload")];
    scene.deploy(&packed_parts("probe", "job", scene.periapt.path(), &parts, change)?, &[])?;
    scene.periapt.ok(["config", "probe", "script=act: open-port 53/udp"])?;
    scene.periapt.ok(["run", "probe/0", "act"])?;
    scene.periapt.ok(["expose", "probe"])?;
    let problem = "53/udp is open and not forwarded: agents forward TCP alone";
    scene.periapt.ok_until(&["status"], |status| status.contains(problem))?;
    scene.periapt.ok(["unexpose", "probe"])?;
    scene.periapt.ok_until(&["status"], |status| !status.contains(problem)).map(drop)
}

#[test]
fn a_workload_that_is_not_what_the_charm_declares_is_one_error_of_pack() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let at = |name: &str| periapt.path().join(name);
    let charm = periapt_tests::module("probe")?;
    let charm = charm.to_str().context("a path")?;
    fs::create_dir(at("web"))?;
    let pack = ["pack", "web", "--wasm", charm, "-o", "web.charm"];
    let server = fs::read(periapt_tests::module("web-page-server")?)?;
    for (declared, component, expected) in [
        (
            "{component: web.wasm, http: 8080}",
            Some(fs::read(charm)?),
            "workload web: web.wasm: the component does not export wasi:http/incoming-handler, which a workload with a \
             port has; its exports: periapt:charm/handler@",
        ),
        (
            "{component: web.wasm}",
            Some(server.clone()),
            "workload web: web.wasm: the component does not export wasi:cli/run, which a workload without a port has; its \
             exports: wasi:http/incoming-handler@",
        ),
        ("{component: web.wasm}", Some(b"no component".to_vec()), "web.wasm: not a WebAssembly binary"),
        ("{component: web.wasm}", None, "workload web: the charm has no file web.wasm"),
        ("{component: web.wasm, https: 8443}", Some(server), "unknown field `https`"),
    ] {
        let metadata = format!(
            "{{name: web, type: charm, summary: s, description: d, x-periapt: {{workloads: {{web: {declared}}}}}}}\n"
        );
        fs::write(at("web/charmcraft.yaml"), metadata)?;
        match component {
            Some(component) => fs::write(at("web/web.wasm"), component)?,
            None => fs::remove_file(at("web/web.wasm"))?,
        }
        let error = periapt.refused(pack)?;
        ensure!(error.contains(expected), "{declared}: {error}");
        ensure!(!at("web.charm").exists(), "{declared}: an archive was written");
    }
    Ok(())
}
