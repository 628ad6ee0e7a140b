//! Two containers of one unit: they share their network, as those of a pod in Kubernetes do.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_tests::{packed_changed, signal};

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
