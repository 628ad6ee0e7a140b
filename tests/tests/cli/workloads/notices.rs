//! Notices of workloads and of their checks, from the pod to the charm's hook.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::Context as _;
use periapt_tests::signal;
use serde_json::{Value, json};

use super::{PLAIN, Scene, children, until};

/// A layer with a check that passes while a file exists.
fn checked(file: &std::path::Path) -> Value {
    let check = format!("exec: {{command: test -e {}}}", file.display());
    let layer =
        format!("checks: {{up: {{override: replace, period: 200ms, timeout: 30s, threshold: 2, {check}}}}}");
    json!({"action": "add", "combine": true, "label": "up", "format": "yaml", "layer": layer})
}

impl Scene {
    pub(super) fn add_check(&self) -> anyhow::Result<PathBuf> {
        let file = self.periapt.path().join("up");
        let added = self.ask_until(&format!("web POST /v1/layers {}", checked(&file)), |answer| {
            !answer.contains("nobody listens")
        })?;
        assert!(added.contains(": 200 "), "{added}");
        Ok(file)
    }

    fn notify(&self, key: &str) -> anyhow::Result<()> {
        let notice = json!({"action": "add", "type": "custom", "key": key});
        let added = self.ask(&format!("web POST /v1/notices {notice}"))?;
        assert!(added.contains(": 200 "), "{added}");
        Ok(())
    }

    /// Returns the committed hooks about notices: the kind with what the charm was told of, in order. Each has another
    /// number of its start.
    fn told(&self) -> anyhow::Result<Vec<String>> {
        let mut numbers = BTreeSet::new();
        let mut told = Vec::new();
        let shown = self.periapt.json(["hooks", "probe/0"])?;
        let entries = shown.get("entries").and_then(Value::as_array).context("entries")?;
        let mut records: Vec<&Value> = entries.iter().filter_map(|entry| entry.get("record")).collect();
        records.sort_by_key(|record| record["seq"].as_u64());
        for record in records.into_iter().filter(|record| record["outcome"] == "handled") {
            let event = record["event"].as_object().and_then(|event| event.iter().next());
            let Some((kind, about)) = event.filter(|(_, about)| about.get("workload").is_some()) else {
                continue;
            };
            assert!(numbers.insert(about["workload"].to_string()), "{about} was told twice: {shown}");
            let subject = about.get("check").or_else(|| about.get("key")).and_then(Value::as_str);
            told.push(format!("{kind} {}", subject.context("a subject")?));
        }
        Ok(told)
    }

    pub(super) fn told_until(&self, expected: &[&str]) -> anyhow::Result<()> {
        until(&format!("{expected:?}"), || Ok(self.told()?.len() >= expected.len()))?;
        assert_eq!(self.told()?, expected);
        Ok(())
    }

    fn runner(&self) -> anyhow::Result<u32> {
        until("a runner", || Ok(!children(self.agent.id(), &["agent runner"])?.is_empty()))?;
        children(self.agent.id(), &["agent runner"])?.first().copied().context("no runner")
    }

    /// Returns true if the charm logged the event with this data.
    fn logged(&self, line: &str) -> anyhow::Result<bool> {
        let log = self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        Ok(log.contains(line))
    }
}

#[test]
fn notices_and_checks_of_a_workload_are_told_whatever_is_killed() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    scene.boot_id()?;
    scene.notify("example.com/first")?;
    let mut expected = vec!["pebble-custom-notice example.com/first"];
    scene.told_until(&expected)?;
    assert!(scene.logged("web-pebble-custom-notice id=1 type=custom key=example.com/first attempt=1")?);

    // The runner dies before it has heard that the check fails: the next one is told.
    let up = scene.periapt.path().join("up");
    fs::write(&up, "")?;
    scene.add_check()?;
    let runner = scene.runner()?;
    signal(runner, "STOP")?;
    fs::remove_file(&up)?;
    // The check fails meanwhile, or later: then the next runner hears of it in the usual way.
    std::thread::sleep(std::time::Duration::from_secs(1));
    signal(runner, "KILL")?;
    expected.push("pebble-check-failed up");
    scene.told_until(&expected)?;
    assert!(scene.logged("web-pebble-check-failed check=up")?);

    // The hook about the recovery fails, and the runner dies while it waits: it runs again with the same event.
    scene.periapt.ok(["config", "probe", "script=web-pebble-check-recovered: fail not now"])?;
    fs::write(&up, "")?;
    scene.periapt.ok_until(&["status"], |status| status.contains("not now") || status.contains("error"))?;
    signal(scene.runner()?, "KILL")?;
    scene.periapt.ok(["config", "probe", "script="])?;
    // Its own retry may come first.
    scene.periapt.run(["resolved", "probe/0"])?;
    expected.push("pebble-check-recovered up");
    scene.told_until(&expected)?;

    // A later repetition of the first notice is told, and nothing before it again.
    scene.notify("example.com/first")?;
    expected.push("pebble-custom-notice example.com/first");
    scene.told_until(&expected)?;

    // The keeper dies, and the check fails meanwhile, or later. The next keeper has the same pod, and tells it once.
    let first = scene.boot_id()?;
    let pods = children(scene.agent.id(), &["agent pod --keeper"])?;
    signal(scene.agent.id(), "KILL")?;
    fs::remove_file(&up)?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    scene.agent = scene.periapt.agent("worker", PLAIN)?;
    assert_eq!(scene.agent.first_line()?, "ready worker");
    assert_eq!(scene.boot_id()?, first);
    expected.push("pebble-check-failed up");
    scene.told_until(&expected)?;

    // The pod dies: notices count from its next start, after its pebble-ready.
    signal(*pods.first().context("no pod")?, "KILL")?;
    until("another pod has begun", || Ok(scene.boot_id()? != first))?;
    scene.add_check()?;
    expected.push("pebble-check-failed up");
    scene.told_until(&expected)?;
    Ok(())
}

#[test]
fn python_charms_on_ops_are_told_of_notices_and_checks() -> anyhow::Result<()> {
    let scene = Scene::with("python-workload")?;
    let periapt = &scene.periapt;
    let pages = periapt.path().join("pages");
    periapt.ok(["config", "python-workload", &format!("directory={}", pages.display())])?;
    let logged = |line: &str| {
        let arguments = ["debug-log", "--replay", "--no-tail", "--include", "python-workload/0"];
        periapt.ok_until(&arguments, |log| log.contains(line)).map(|_| ())
    };
    logged("check up of web is down")?;
    fs::write(pages.join("up"), "")?;
    logged("check up of web is up")?;
    periapt.ok(["run", "python-workload/0", "notify", "key=example.com/done", "n=seven"])?;
    logged("noticed web NoticeType.CUSTOM example.com/done seven")?;
    Ok(())
}
