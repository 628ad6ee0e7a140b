//! Pods that live on when their agent's keeper is killed.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::Context as _;
use periapt_tests::{free_port, signal};
use serde_json::{Value, json};

use super::{PLAIN, Scene, processes, until};

impl Scene {
    /// Returns the processes of the agent's pods, and of a server in one.
    fn begun(&self, port: u16) -> anyhow::Result<Vec<u32>> {
        let own = fs::canonicalize(self.periapt.path())?.display().to_string();
        let mut begun = processes(&[&format!("http.server {port}")])?;
        assert_eq!(begun.len(), 1, "one server");
        let server = begun.first().context("no server")?;
        let server = fs::read_to_string(format!("/proc/{server}/status"))?;
        let pod = server.lines().find_map(|line| line.strip_prefix("PPid:\t")).context("a parent")?;
        begun.push(pod.parse()?);
        let holders = processes(&["agent hold-pods", &own])?;
        assert_eq!(holders.len(), 1, "one process holds the pods of an agent");
        begun.extend(holders);
        Ok(begun)
    }

    fn kill_agent(&self) -> anyhow::Result<()> {
        signal(self.agent.id(), "KILL")?;
        let state = || fs::read_to_string(format!("/proc/{}/status", self.agent.id())).unwrap_or_default();
        until("the agent is dead", || Ok(!state().contains("State:") || state().contains("State:\tZ")))
    }

    fn next_agent(&mut self, options: &[&str]) -> anyhow::Result<()> {
        self.agent = self.periapt.agent("worker", PLAIN.iter().chain(options).copied())?;
        assert_eq!(self.agent.first_line()?, "ready worker");
        Ok(())
    }

    /// Returns the number of committed hooks of a kind.
    fn hooks(&self, kind: &str) -> anyhow::Result<usize> {
        let shown = self.periapt.json(["hooks", "probe/0"])?;
        let entries = shown.get("entries").and_then(Value::as_array).context("entries")?;
        let events = entries.iter().filter_map(|entry| entry.pointer("/record/event")?.as_object());
        Ok(events.filter(|event| event.contains_key(kind)).count())
    }
}

fn runs(pid: &u32) -> bool {
    fs::exists(format!("/proc/{pid}/exe")).unwrap_or_default()
}

/// Asks a server at an address of the host for its page.
fn page(client: &mut TcpStream) -> anyhow::Result<String> {
    client.set_read_timeout(Some(Duration::from_secs(120)))?;
    client.write_all(b"GET /page.txt HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn pods_outlive_a_keeper_that_is_killed_and_the_next_one_takes_them_over() -> anyhow::Result<()> {
    let listen = ["--listen-address", "127.0.0.4"];
    let mut scene = Scene::with_options("probe", &listen)?;
    let (first, port) = (scene.boot_id()?, free_port()?);
    scene.serve(port)?;
    let up = scene.periapt.path().join("up");
    fs::write(&up, "")?;
    scene.add_check()?;
    scene.act(&format!("open-port {port}/tcp"))?;
    scene.periapt.ok(["expose", "probe"])?;
    let asked = || page(&mut TcpStream::connect(("127.0.0.4", port))?);
    until("the port answers", || Ok(asked().is_ok_and(|page| page.contains("a page of the workload"))))?;
    let begun = scene.begun(port)?;
    until("the charm is told of its container", || Ok(scene.hooks("pebble-ready")? > 0))?;
    let ready = scene.hooks("pebble-ready")?;

    // The keeper dies. What it ran goes on, a check fails meanwhile, and a client waits.
    scene.kill_agent()?;
    fs::remove_file(&up)?;
    let mut client = TcpStream::connect(("127.0.0.4", port))?;
    assert!(begun.iter().all(runs), "they live on");

    scene.next_agent(&listen)?;
    assert!(page(&mut client)?.contains("a page of the workload"), "it was not refused, and gets its answer");
    assert_eq!(scene.boot_id()?, first);
    assert_eq!(scene.begun(port)?, begun, "the same processes");
    scene.told_until(&["pebble-check-failed up"])?;
    assert_eq!(scene.hooks("pebble-ready")?, ready, "a start is told once");
    until(
        "the port answers again",
        || Ok(asked().is_ok_and(|page| page.contains("a page of the workload"))),
    )?;

    // The unit goes while no agent runs: the next agent ends its pod.
    scene.kill_agent()?;
    scene.periapt.run(["remove-application", "probe", "--force", "--no-wait", "--no-prompt"])?;
    let gone = |status: &str| !status.contains("probe/0");
    scene.periapt.ok_until(&["status"], gone)?;
    assert!(begun.iter().all(runs), "nobody has told them");
    scene.next_agent(&listen)?;
    let of_pod = &begun[..2];
    until("the pod has ended with its unit", || Ok(!of_pod.iter().any(runs)))?;
    Ok(())
}

#[test]
fn pods_without_a_keeper_end_after_their_time() -> anyhow::Result<()> {
    let scene = Scene::with_options("probe", &["--keep-pods", "3"])?;
    let port = free_port()?;
    scene.boot_id()?;
    scene.serve(port)?;
    let begun = scene.begun(port)?;
    scene.kill_agent()?;
    until("all processes have ended", || Ok(!begun.iter().any(runs)))?;
    Ok(())
}

#[test]
fn a_pod_that_nobody_holds_has_ended_before_the_next_one_begins() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let (first, port) = (scene.boot_id()?, free_port()?);
    // Its pod gives it this time to end.
    let slow = json!({
        "override": "replace",
        "command": "sh -c \"trap '' TERM; sleep 1000\"",
        "startup": "enabled",
        "kill-delay": "8s",
    });
    let layer = json!({"services": {"slow": slow}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "slow", "format": "yaml", "layer": layer});
    let added = scene.ask(&format!("web POST /v1/layers {add}"))?;
    assert!(added.contains(": 200 "), "{added}");
    scene.serve(port)?;
    let begun = scene.begun(port)?;
    let &[_server, pod, holder] = begun.as_slice() else { anyhow::bail!("unknown processes {begun:?}") };
    signal(holder, "KILL")?;
    scene.kill_agent()?;
    scene.next_agent(&[])?;
    let second = scene.boot_id()?;
    assert!(!runs(&pod), "the earlier pod runs beside the next one");
    assert_ne!(second, first);
    scene.serve(port)
}

#[test]
fn an_agent_that_is_told_to_end_or_whose_supervisor_ends_what_is_left_leaves_no_process() -> anyhow::Result<()>
{
    let mut scene = Scene::new()?;
    let port = free_port()?;
    scene.boot_id()?;
    scene.serve(port)?;
    let begun = scene.begun(port)?;
    scene.kill_agent()?;
    let data = scene.periapt.path().join("worker");
    scene.periapt.ok(["agent", "end-pods", "--data", data.to_str().context("a path")?])?;
    assert!(!begun.iter().any(runs), "the command waits for their end");

    scene.next_agent(&[])?;
    scene.boot_id()?;
    scene.serve(port)?;
    let begun = scene.begun(port)?;
    let Scene { periapt: _periapt, agent } = scene;
    assert_eq!(agent.end("TERM")?, Some(0));
    until("all processes have ended", || Ok(!begun.iter().any(runs)))?;
    Ok(())
}
