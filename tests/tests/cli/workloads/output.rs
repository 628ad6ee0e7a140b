//! The output of several containers of a unit, and of workloads among the lines of a model's log.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::mpsc,
    thread,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, POLL_INTERVAL, packed_changed, signal};
use serde_json::{Value, json};

use super::{PLAIN, Scene, TRIES};

impl Scene {
    /// Deploys `probe` with a second container, `db`.
    fn with_two_containers() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let mut agent = periapt.agent("worker", PLAIN)?;
        assert_eq!(agent.first_line()?, "ready worker");
        let two = |text: &str| {
            text.replace(
                "  web:\n    resource: image\n",
                "  web:\n    resource: image\n  db:\n    resource: image\n",
            )
        };
        let charm = packed_changed("probe", "two", periapt.path(), two)?;
        periapt.ok(["deploy", charm.to_str().context("a path")?])?;
        Ok(Self { periapt, agent })
    }

    /// Lets a service of a container say a line again and again.
    fn say(&self, container: &str, line: &str) -> anyhow::Result<()> {
        self.serve_script(container, &format!("while true; do echo {line}; sleep 0.2; done"))
    }

    /// Lets a service of a container, `say`, run a shell's script without single quotes.
    pub(super) fn serve_script(&self, container: &str, script: &str) -> anyhow::Result<()> {
        let command = format!("sh -c '{script}'");
        let service = json!({"override": "replace", "command": command, "startup": "enabled"});
        let layer = json!({"services": {"say": service}}).to_string();
        let add = json!({"action": "add", "combine": true, "label": "l", "format": "yaml", "layer": layer});
        let has_begun = |answer: &str| answer.contains(": 200 ");
        self.ask_until(&format!("{container} POST /v1/layers {add}"), has_begun)?;
        let replan = json!({"action": "replan"});
        self.ask_until(&format!("{container} POST /v1/services {replan}"), |answer| {
            answer.contains(": 202 ")
        })?;
        Ok(())
    }
}

#[test]
fn all_containers_of_a_unit_are_shown_in_order_and_workloads_in_the_log() -> anyhow::Result<()> {
    let scene = Scene::with_two_containers()?;
    let periapt = &scene.periapt;
    scene.say("web", "hello-of-web")?;
    scene.say("db", "hello-of-db")?;

    let has_both = |shown: &str| shown.contains("[web] 2") && shown.contains("[db] 2");
    let shown = periapt.ok_until(&["logs", "probe/0"], has_both)?;
    let times: Vec<&str> = shown.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    ensure!(times.is_sorted() && times.len() >= 2, "{shown}");
    ensure!(shown.lines().all(|line| line.contains(" [say] hello-of-")), "{shown}");
    let one = periapt.ok(["logs", "probe/0:db", "-n", "1"])?;
    ensure!(one.starts_with('2') && one.ends_with("[say] hello-of-db\n"), "{one}");
    let objects = periapt.ok(["logs", "probe/0", "-n", "1", "--format", "json"])?;
    let objects = objects.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let mut containers: Vec<_> = objects.iter().filter_map(|line| line["container"].as_str()).collect();
    containers.sort_unstable();
    assert_eq!(containers, ["db", "web"]);

    // Both are followed.
    let mut follower =
        periapt.command(["logs", "probe/0", "-n", "0", "-f"]).stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(follower.stdout.take().context("its output")?);
    let (sent, received) = mpsc::channel();
    let reader = thread::spawn(move || {
        let (mut web, mut db) = (false, false);
        for line in lines.lines().map_while(Result::ok) {
            web |= line.starts_with("[web] ") && line.ends_with("hello-of-web");
            db |= line.starts_with("[db] ") && line.ends_with("hello-of-db");
            if web && db {
                let _ = sent.send(());
                return;
            }
        }
    });
    let seen = received.recv_timeout(POLL_INTERVAL * TRIES);
    signal(follower.id(), "TERM")?;
    follower.wait()?;
    let _ = reader.join();
    ensure!(seen.is_ok(), "the follower did not see both containers");

    // An unknown container is told with those that there are.
    let unknown = periapt.refused(["logs", "probe/0:nosuch"])?;
    ensure!(unknown.contains("no container \"nosuch\": it has db, web"), "{unknown}");
    let unknown = periapt.refused(["restart", "probe/0:nosuch"])?;
    ensure!(unknown.contains("no container \"nosuch\": it has db, web"), "{unknown}");
    let unknown = periapt.run(["exec", "-u", "probe/0", "--container", "nosuch", "--", "true"])?;
    ensure!(unknown.stderr.contains("declares no container \"nosuch\"; it declares db, web"), "{unknown:?}");

    // The same lines are among those of the log.
    let log = |more: &[&'static str]| {
        let words = ["debug-log", "--workloads", "--no-tail", "-n", "5"];
        periapt.ok([&words[..], more].concat())
    };
    let both = log(&["--include", "probe/0"])?;
    for line in ["INFO workload.db.say hello-of-db", "INFO workload.web.say hello-of-web"] {
        ensure!(
            both.lines().any(|shown| shown.starts_with("unit-probe-0: ") && shown.ends_with(line)),
            "{both}"
        );
    }
    ensure!(both.lines().any(|line| !line.contains(" workload.")), "the log's own lines: {both}");
    let web = log(&["--include-module", "workload.web"])?;
    ensure!(web.contains("hello-of-web") && !web.contains("hello-of-db"), "{web}");
    ensure!(!periapt.ok(["debug-log", "--replay", "--no-tail"])?.contains("workload.web"), "nothing is kept");
    let warnings = periapt.run(["debug-log", "--workloads", "--level", "WARNING", "--no-tail"])?;
    ensure!(warnings.code == Some(2) && warnings.stderr.contains("leaves out all of it"), "{warnings:?}");
    let nobody = periapt.refused(["debug-log", "--workloads", "--no-tail", "--include", "nosuch"])?;
    ensure!(nobody.contains("no chosen unit has a container"), "{nobody}");
    Ok(())
}
