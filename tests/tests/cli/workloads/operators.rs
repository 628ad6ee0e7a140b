//! Workloads as operators see them, and their verbs for them.

use std::{fs, io::BufRead as _, net::TcpListener};

use anyhow::Context as _;
use periapt_tests::{Installation, free_port, signal};
use serde_json::{Value, json};

use super::{Scene, children, processes, until};

/// The agent's address in these tests.
const AGENT: &str = "127.0.0.7";

/// The most orders of one agent at a time.
const ORDERS: usize = 16;

impl Scene {
    /// Waits until `show-unit` shows the container as wanted, and returns it.
    fn container_until(&self, holds: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let container =
            |shown: &Value| shown.pointer("/probe~10/containers/web").cloned().unwrap_or_default();
        let show = ["show-unit", "probe/0"];
        Ok(container(&self.periapt.json_until(&show, |shown| holds(&container(shown)))?))
    }

    /// Waits until `status` lists such a problem, and returns all problems.
    fn problems_until(&self, holds: impl Fn(&[String]) -> bool) -> anyhow::Result<Vec<String>> {
        let problems = |shown: &Value| -> Vec<String> {
            let listed = shown.pointer("/applications/probe/units/probe~10/workload-problems");
            listed.and_then(|listed| serde_json::from_value(listed.clone()).ok()).unwrap_or_default()
        };
        Ok(problems(&self.periapt.json_until(&["status"], |shown| holds(&problems(shown)))?))
    }
}

fn service<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    let services = container.get("services")?.as_array()?;
    services.iter().find(|service| service["name"] == name)
}

#[test]
fn operators_see_containers_services_checks_and_taken_ports() -> anyhow::Result<()> {
    let scene = Scene::with_options("probe", &["--listen-address", AGENT])?;
    let periapt = &scene.periapt;
    let first = scene.boot_id()?;
    let shown = scene.container_until(|container| container["boot-id"] == first.as_str())?;
    for (key, value) in [("state", json!("running")), ("driver", json!("plain")), ("starts", json!(1))] {
        assert_eq!(shown[key], value, "{shown}");
    }
    assert!(shown.get("services").is_none(), "{shown}");

    // A service that is killed is counted, and so is one that ends again and again.
    let (port, server) = (free_port()?, |port: u16| format!("http.server {port}"));
    scene.serve(port)?;
    let is_active = |container: &Value, restarts: u64| {
        service(container, "web").is_some_and(|web| web["current"] == "active" && web["restarts"] == restarts)
    };
    let shown = scene.container_until(|container| is_active(container, 0))?;
    assert_eq!(service(&shown, "web").context("web")?["startup"], "enabled");
    let pid = *processes(&[&server(port)])?.first().context("a server")?;
    signal(pid, "KILL")?;
    scene.container_until(|container| is_active(container, 1))?;
    assert_eq!(scene.problems_until(<[String]>::is_empty)?, Vec::<String>::new());
    let text = periapt.ok(["show-unit", "probe/0"])?;
    assert!(text.contains("  containers:\n    web:\n      driver: plain\n      state: running\n"), "{text}");

    // A check that fails, until it succeeds again.
    let file = scene.add_check()?;
    let problems = scene.problems_until(|problems| !problems.is_empty())?;
    assert_eq!(problems, ["check up of container web failed 2 times or more"]);
    let text = periapt.ok(["status"])?;
    assert!(text.contains("Workload problem") && text.contains(&problems[0]), "{text}");
    let shown = scene.container_until(|container| container["checks"][0]["status"] == "down")?;
    assert_eq!(shown["checks"][0]["threshold"], 2, "{shown}");
    fs::write(&file, "")?;
    scene.problems_until(<[String]>::is_empty)?;

    // A port that another process has.
    let holder = TcpListener::bind((AGENT, 0))?;
    let taken = holder.local_addr()?.port();
    scene.act(&format!("open-port {taken}/tcp"))?;
    periapt.ok(["expose", "probe"])?;
    let problems = scene.problems_until(|problems| !problems.is_empty())?;
    let expected =
        format!("port {taken} is not listened on at {AGENT}: another process of the host listens there");
    assert_eq!(problems, [expected]);
    let shown = periapt.json(["show-unit", "probe/0"])?;
    assert_eq!(shown["probe/0"]["taken-ports"][0]["port"], taken, "{shown}");
    scene.act(&format!("close-port {taken}/tcp"))?;
    scene.problems_until(<[String]>::is_empty)?;

    // A container that dies is another start, without services.
    let pods = children(scene.agent.id(), &["agent pod --keeper"])?;
    signal(*pods.first().context("no pod")?, "KILL")?;
    let shown =
        scene.container_until(|container| container["starts"] == 2 && container["state"] == "running")?;
    assert!(shown["boot-id"] != first.as_str() && shown.get("services").is_none(), "{shown}");
    Ok(())
}

#[test]
fn an_agent_that_runs_no_workloads_says_so_in_status_and_one_that_is_gone_says_nothing() -> anyhow::Result<()>
{
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let mut agent = periapt.agent("worker", [])?;
    assert_eq!(agent.first_line()?, "ready worker");
    periapt.deploy("probe", [])?;
    let scene = Scene { periapt, agent };
    let problems = scene.problems_until(|problems| !problems.is_empty())?;
    assert_eq!(problems, ["container web does not run: this agent runs no workloads"]);
    let shown = scene.container_until(|container| container["state"] == "down")?;
    assert_eq!(shown["reason"], "this agent runs no workloads");
    let logs = scene.periapt.run(["logs", "probe/0"])?;
    assert!(logs.code == Some(1) && logs.stderr.contains("this agent runs no workloads"), "{logs:?}");
    let Scene { periapt, agent } = scene;
    agent.end("KILL")?;
    let is_away = || Ok(periapt.run(["logs", "probe/0"])?.stderr.contains("is not connected"));
    until("the controller knows that the agent is away", is_away)
}

#[test]
fn logs_of_services_are_shown_and_followed_beside_hooks() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let port = free_port()?;
    scene.serve(port)?;
    let get = |page: &str| {
        std::net::TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
            use std::io::{Read as _, Write as _};
            stream.write_all(format!("GET /{page} HTTP/1.0\r\n\r\n").as_bytes())?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        })
    };
    until("the server listens", || Ok(get("one").is_ok()))?;
    let shown = periapt.ok_until(&["logs", "probe/0"], |shown| shown.contains("GET /one"))?;
    let line = shown.lines().find(|line| line.contains("GET /one")).context("a line")?;
    assert!(line.contains("Z [web] "), "{line}");
    let last = periapt.ok(["logs", "probe/0:web", "-n", "1", "--format", "json", "web"])?;
    let line: Value = serde_json::from_str(last.trim())?;
    assert_eq!((last.lines().count(), line["service"].as_str()), (1, Some("web")));
    let none = periapt.ok(["logs", "probe/0", "nosuch"])?;
    assert_eq!(none, "");
    let unknown = periapt.run(["logs", "probe/0:db"])?;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("\"db\""), "{unknown:?}");
    let unknown = periapt.run(["logs", "probe/7"])?;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("probe/7"), "{unknown:?}");

    // Followers that leave make room for others, and while they follow, hooks run.
    for number in 0..ORDERS + 4 {
        let mut command = periapt.command(["logs", "probe/0", "-n", "0", "-f"]);
        let mut follower = command.stdout(std::process::Stdio::piped()).spawn()?;
        let mut lines = std::io::BufReader::new(follower.stdout.take().context("its output")?);
        let page = format!("page-{number}");
        let (sent, received) = std::sync::mpsc::channel();
        let wanted = page.clone();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            while !line.contains(&wanted) {
                line.clear();
                if lines.read_line(&mut line).unwrap_or_default() == 0 {
                    break;
                }
            }
            let _ = sent.send(line);
        });
        // It may begin after the first request.
        let seen = (0..super::TRIES).find_map(|_| {
            let _ = get(&page);
            received.recv_timeout(periapt_tests::POLL_INTERVAL).ok()
        });
        signal(follower.id(), "TERM")?;
        follower.wait()?;
        let _ = reader.join();
        assert!(seen.is_some_and(|line| line.contains(&page)), "follower {number} saw nothing");
    }

    // A hook that has failed keeps nobody from the logs.
    periapt.ok(["config", "probe", "script=config-changed: fail it broke"])?;
    periapt.ok_until(&["status"], |shown| shown.contains("hook failed"))?;
    assert!(periapt.ok(["logs", "probe/0"])?.contains("GET /page-"));
    Ok(())
}

#[test]
fn services_restart_by_one_verb() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let none = periapt.run(["restart", "probe/0"])?;
    assert!(none.code == Some(1), "{none:?}");
    let port = free_port()?;
    scene.serve(port)?;
    scene.container_until(|container| service(container, "web").is_some())?;
    let server = || processes(&[&format!("http.server {port}")]);
    let before = server()?;
    periapt.ok(["restart", "probe/0"])?;
    until("another server runs", || Ok(server()?.first().is_some_and(|pid| !before.contains(pid))))?;
    let before = server()?;
    periapt.ok(["restart", "probe/0:web", "web"])?;
    until("another server runs", || Ok(server()?.first().is_some_and(|pid| !before.contains(pid))))?;
    let unknown = periapt.run(["restart", "probe/0:web", "nosuch"])?;
    assert!(unknown.code == Some(1), "{unknown:?}");
    Ok(())
}

#[test]
fn bootstrap_starts_an_agent_that_runs_workloads_and_does_so_again() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let refused = periapt.run(["bootstrap", "local", "--workloads", "nosuch"])?;
    assert!(
        refused.code == Some(2) && refused.stderr.contains("there is no driver \"nosuch\""),
        "{refused:?}"
    );
    let refused = periapt.run(["bootstrap", "local", "--workloads", "plain"])?;
    assert!(refused.code == Some(1) && refused.stderr.contains("isolat"), "{refused:?}");
    assert!(periapt.processes()?.is_empty(), "nothing was started");
    periapt.ok(["bootstrap", "local", "--workloads", "wasm,plain", "--i-know-that-nothing-is-isolated"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("probe", [])?;
    let is_running = |shown: &Value| {
        let container = shown.pointer("/probe~10/containers/web");
        container.is_some_and(|container| container["state"] == "running" && container["driver"] == "plain")
    };
    let shown = periapt.json_until(&["show-unit", "probe/0"], is_running)?;
    let first = shown.pointer("/probe~10/containers/web/boot-id").cloned();
    periapt.ok(["controller", "stop"])?;
    periapt.ok(["controller", "start"])?;
    let is_new = |shown: &Value| {
        is_running(shown) && shown.pointer("/probe~10/containers/web/boot-id") != first.as_ref()
    };
    periapt.json_until(&["show-unit", "probe/0"], is_new)?;
    Ok(())
}
