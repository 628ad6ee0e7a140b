//! `try-hook`: a hook of a packed charm, without a controller.

use std::{
    fs,
    io::Write as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::Context as _;
use periapt_tests::{Installation, packed};
use serde_json::{Value, json};

use crate::text;

const SECRET: &str = "secret:ctgg1h9p6qk5fqb3k8n0";

/// Returns a scene of the probe in which a unit of `other` has changed its bag.
fn scene(script: &[&str]) -> Value {
    let script = script.iter().map(|action| format!("*: {action}\n")).collect::<String>();
    json!({
        "unit": "probe/3",
        "event": {"hook": "sink-relation-changed", "relation": 4, "remote-unit": "other/0"},
        "leader": true,
        "config": {"script": script},
        "relations": [{
            "id": 4,
            "endpoint": "sink",
            "remote-application": "other",
            "members": {"other/0": {"host": "10.0.0.7"}, "other/1": {}},
            "remote-settings": {"secret": SECRET},
        }],
    })
}

fn with(mut scene: Value, key: &str, value: Value) -> Value {
    if let Some(parts) = scene.as_object_mut() {
        parts.insert(key.to_owned(), value);
    }
    scene
}

struct Bench {
    periapt: Installation,
    charm: PathBuf,
}

impl Bench {
    fn new() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        let charm = packed("probe", periapt.path())?;
        Ok(Self { periapt, charm })
    }

    fn command(&self) -> Command {
        let mut command = self.periapt.command(["try-hook"]);
        command.arg(&self.charm).env("PERIAPT_CACHE", self.periapt.path().join("cache"));
        command
    }

    /// Returns the answer to each line, from one process.
    fn answers(&self, lines: &[String]) -> anyhow::Result<Vec<Value>> {
        let mut child = self.command().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().context("its input")?;
        for line in lines {
            writeln!(input, "{line}")?;
        }
        drop(input);
        let done = child.wait_with_output()?;
        anyhow::ensure!(done.status.success(), "{:?}", done.status);
        String::from_utf8(done.stdout)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    fn tried(&self, scene: &Value) -> anyhow::Result<Value> {
        let answers = self.answers(&[scene.to_string()])?;
        let [answer] = answers.as_slice() else { anyhow::bail!("{answers:?}") };
        Ok(answer.get("tried").with_context(|| answer.to_string())?.clone())
    }
}

/// Returns all log lines of a hook.
fn log(tried: &Value) -> Vec<&str> {
    let early = tried.get("early").and_then(Value::as_array).into_iter().flatten();
    early.filter_map(|effect| effect.pointer("/log/message")?.as_str()).collect()
}

#[test]
fn a_hook_of_a_workload_is_told_its_notice_or_check() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let notice = json!({"id": 3, "key": "example.com/done"});
    for (event, said) in [
        (json!({"hook": "web-pebble-ready"}), "event web-pebble-ready attempt=1"),
        (
            json!({"hook": "web-pebble-custom-notice", "notice": notice}),
            "event web-pebble-custom-notice id=3 type=custom key=example.com/done attempt=1",
        ),
        (
            json!({"hook": "web-pebble-check-failed", "check": "up"}),
            "event web-pebble-check-failed check=up attempt=1",
        ),
        (
            json!({"hook": "web-pebble-check-recovered", "check": "up"}),
            "event web-pebble-check-recovered check=up attempt=1",
        ),
    ] {
        let tried = bench.tried(&with(scene(&[]), "event", event))?;
        assert_eq!(log(&tried), [said], "{tried}");
    }
    for (event, error) in [
        (json!({"hook": "db-pebble-ready"}), "container"),
        (json!({"hook": "web-pebble-custom-notice"}), "needs its notice"),
        (json!({"hook": "web-pebble-check-failed"}), "needs its check"),
        (json!({"hook": "web-pebble-gone"}), "there is no hook"),
    ] {
        let answers = bench.answers(&[with(scene(&[]), "event", event).to_string()])?;
        let refused = answers.first().and_then(|answer| answer.get("error")).context("an error")?;
        assert!(refused.to_string().contains(error), "{refused}");
    }
    Ok(())
}

#[test]
fn a_hook_sees_its_scene_and_what_it_asks_for_comes_out() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let scene = scene(&[
        "tool relation-get --format=json - other/0",
        "tool relation-list",
        "tool state-get",
        "tool opened-ports",
        "tool unit-get private-address",
        "set echo=10.0.0.7",
        "app-set said=yes",
        "store seen=1",
        "open-port 81/tcp",
        "status active ready",
    ]);
    let scene = with(scene, "state", json!({"seen": "0"}));
    let scene = with(scene, "ports", json!(["80/tcp"]));
    let scene = with(scene, "addresses", json!(["10.9.9.9"]));
    let tried = bench.tried(&scene)?;
    assert_eq!(text(&tried, "/outcome")?, "handled");
    let log = log(&tried);
    for line in [
        "sink:4: event sink-relation-changed relation=sink:4 app=other unit=other/0 attempt=1",
        "sink:4: tool relation-get: 0 {\"host\":\"10.0.0.7\"} ",
        "sink:4: tool relation-list: 0 other/0\nother/1 ",
        "sink:4: tool state-get: 0 seen: \"0\" ",
        "sink:4: tool opened-ports: 0 80/tcp ",
        "sink:4: tool unit-get: 0 10.9.9.9 ",
    ] {
        assert!(log.contains(&line), "{line:?} is not in {log:#?}");
    }
    assert_eq!(
        tried.pointer("/effects/bags"),
        Some(&json!({"4": {"unit": {"echo": "10.0.0.7"}, "application": {"said": "yes"}}}))
    );
    assert_eq!(tried.pointer("/effects/state"), Some(&json!({"seen": "1"})));
    assert_eq!(tried.pointer("/effects/ports/open"), Some(&json!([{"range": "81/tcp", "endpoint": null}])));
    let early = tried.get("early").and_then(Value::as_array).context("early")?;
    assert!(early.contains(&json!({"unit-status": {"status": "active", "message": "ready"}})), "{early:?}");
    Ok(())
}

#[test]
fn scenes_know_nothing_of_each_other_and_a_wrong_one_ends_nothing() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let mut wrong = scene(&[]);
    wrong["event"] = json!({"hook": "sink-relation-broken", "relation": 5});
    let answers = bench.answers(&[
        scene(&["store a=1", "write /tmp/a=x"]).to_string(),
        "{".to_owned(),
        String::new(),
        wrong.to_string(),
        with(scene(&[]), "config", json!({"nonsense": 1})).to_string(),
        with(scene(&[]), "seed", json!("12")).to_string(),
        scene(&["tool state-get", "read /tmp/a", "fail in the end"]).to_string(),
    ])?;
    let error = |index: usize| answers.get(index).and_then(|it| it.get("error")).and_then(Value::as_str);
    assert_eq!(answers.len(), 6, "{answers:#?}");
    assert_eq!(answers.first().and_then(|it| it.pointer("/tried/effects/state")), Some(&json!({"a": "1"})));
    assert!(error(1).is_some_and(|it| it.starts_with("scene: EOF")), "{:?}", error(1));
    assert_eq!(error(2), Some("scene: the event is about relation 5, which the scene lacks"));
    assert!(
        error(3).is_some_and(|it| it.starts_with("scene: config: unknown option \"nonsense\"")),
        "{:?}",
        error(3)
    );
    assert_eq!(error(4), Some("scene: the seed is not 64 hex digits"));
    let last = answers.get(5).and_then(|it| it.get("tried")).context("the last")?;
    let failed = json!({"failed": {"kind": "failed", "message": "in the end", "code": 1}});
    assert_eq!(last.get("outcome"), Some(&failed));
    assert!(log(last).contains(&"sink:4: tool state-get: 0 {} "), "{last}");
    Ok(())
}

#[test]
fn secrets_storage_resources_and_actions_are_as_the_scene_has_them() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let directory = bench.periapt.path().join("scratch");
    fs::create_dir(&directory)?;
    fs::write(directory.join("note"), "of before")?;
    let file = bench.periapt.path().join("data");
    fs::write(&file, "attached")?;
    let scene = scene(&["open", "read /srv/scratch/note", "write /srv/scratch/new=kept", "resource data"]);
    let secret = json!({
        "id": SECRET.trim_start_matches("secret:"),
        "owner": {"application": "other"},
        "revisions": {"1": {"value": "dlo"}, "2": {"value": "wen"}},
        "grants": {"probe": 4},
        "tracked": 1,
    });
    let scene = with(scene, "secrets", json!([secret]));
    let scene = with(scene, "storages", json!([{"id": "scratch/0", "directory": directory}]));
    let scene = with(scene, "resources", json!({"data": file}));
    let tried = bench.tried(&scene)?;
    assert_eq!(text(&tried, "/outcome")?, "handled", "{tried}");
    assert!(log(&tried).contains(&"sink:4: opened value=new"), "{tried}");
    assert!(log(&tried).iter().any(|line| line.contains("of before")), "{tried}");
    assert!(log(&tried).iter().any(|line| line.contains("attached")), "{tried}");
    assert_eq!(fs::read_to_string(directory.join("new"))?, "kept");

    let action = json!({"hook": "greet", "kind": "action"});
    let scene = json!({"unit": "probe/0", "event": action, "parameters": {"whom": "you", "times": 0}});
    let tried = bench.tried(&scene)?;
    let left = tried.get("action").context("what the action left")?;
    assert_eq!(left.pointer("/results/greeting/text"), Some(&json!("hello you")), "{left}");
    assert_eq!(text(left, "/failed")?, "nobody was greeted");
    assert_eq!(text(left, "/stdout")?, "done\n");
    Ok(())
}

#[test]
fn files_of_scenes_are_played_until_a_hook_fails() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let write = |name: &str, scene: &Value| {
        let path = bench.periapt.path().join(name);
        fs::write(&path, scene.to_string()).map(|()| path)
    };
    let good = write("good.json", &scene(&["log well"]))?;
    let bad = write("bad.json", &scene(&["fail badly"]))?;
    let done = bench.command().args([&good, &bad, &good]).output()?;
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(String::from_utf8(done.stdout)?.lines().count(), 2);
    let error = String::from_utf8(done.stderr)?;
    assert_eq!(error, format!("ERROR {}: the hook failed: badly\n", bad.display()));
    Ok(())
}

#[test]
fn a_program_of_this_host_has_the_same_world() -> anyhow::Result<()> {
    let bench = Bench::new()?;
    let directory = bench.periapt.path().join("charm");
    fs::create_dir(&directory)?;
    let handler = "set -e
        status-set active \"$JUJU_HOOK_NAME of $JUJU_REMOTE_UNIT\"
        relation-set echo=\"$(relation-get host)\" leads=\"$(is-leader)\"
        echo '{\"seen\": \"1\"}' | state-set --file -
        printf of-a-file > value
        relation-set --app --file - <<< 'file: of-a-file' 2>/dev/null || relation-set --app file=\"$(cat value)\"
        secret-get --format=json $(relation-get --app - other 2>/dev/null || true) || juju-log \"secret-get: $?\"
        pwd
        echo said >&2\n";
    fs::write(directory.join("handler"), handler)?;
    let file = bench.periapt.path().join("scene.json");
    fs::write(&file, scene(&[]).to_string())?;
    let run = |file: &std::path::Path| {
        let mut command = bench.command();
        command.arg(file).args(["--native", "bash handler", "--directory"]).arg(&directory).output()
    };
    let done = run(&file)?;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let tried: Value = serde_json::from_slice(&done.stdout)?;
    let written = json!({"echo": "10.0.0.7", "leads": "True"});
    assert_eq!(tried.pointer("/effects/bags/4/unit"), Some(&written), "{tried}");
    assert_eq!(tried.pointer("/effects/bags/4/application"), Some(&json!({"file": "of-a-file"})));
    assert_eq!(tried.pointer("/effects/state"), Some(&json!({"seen": "1"})));
    let place = directory.canonicalize()?.display().to_string();
    for line in ["sink:4: secret-get: 2", "said", place.as_str()] {
        assert!(log(&tried).contains(&line), "{line} is not in {tried}");
    }

    fs::write(directory.join("handler"), "relation-set lost=1; exit 7")?;
    let failed = run(&file)?;
    assert_eq!(failed.status.code(), Some(1));
    let tried: Value = serde_json::from_slice(&failed.stdout)?;
    assert_eq!(tried.pointer("/outcome/failed/code"), Some(&json!(7)));
    assert_eq!(tried.pointer("/effects/bags"), Some(&json!({})));
    Ok(())
}
