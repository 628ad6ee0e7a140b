//! Commands of operators in containers.

use std::{
    fs::File,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_tests::{Installation, free_port};
use serde_json::{Value, json};

use super::{Scene, processes, until};
use crate::users::colleague;

#[test]
fn operators_run_programs_in_a_container_and_stop_them() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let exec = |more: &[&'static str]| [&["exec", "-u", "probe/0", "--container", "web"], more].concat();

    let words =
        ["--format", "json", "--", "sh", "-c", "echo \"$1\"; cat; echo err >&2; exit 3", "sh", "a  b"];
    let done = periapt.run(exec(&words))?;
    assert_eq!(done.code, Some(1), "{done:?}");
    let shown: Value = serde_json::from_str(&done.stdout)?;
    let expected = json!({"return-code": 3, "stdout": "a  b\n", "stderr": "err\n"});
    assert_eq!(shown["probe/0"]["results"], expected, "{shown}");
    assert_eq!(periapt.ok(exec(&["--", "echo", "secret-get"]))?, "secret-get\n");
    let much = periapt.ok(exec(&["--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"]))?;
    assert!(much.starts_with("xxx"), "{}", much.len());

    let failed = periapt.run(exec(&["--", "no-such-program"]))?;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let told = format!("{}{}", failed.stdout, failed.stderr);
    assert!(told.contains("cannot find executable \"no-such-program\""), "{failed:?}");
    let unknown = periapt.run(["exec", "-u", "probe/0", "--container", "db", "--", "true"])?;
    assert!(unknown.stderr.contains("declares no container \"db\""), "{unknown:?}");

    // Pebble's own commands need no program in the image.
    let file = scene.add_check()?;
    let pebble = |words: &[&'static str]| exec(&[&["--", "pebble"], words].concat());
    periapt.ok_until(&pebble(&["checks"]), |shown| shown.contains("up     -      enabled  down"))?;
    std::fs::write(&file, "")?;
    periapt.ok_until(&pebble(&["checks", "up"]), |shown| shown.contains("enabled  up"))?;
    scene.serve(free_port()?)?;
    let shown = periapt.ok(pebble(&["services"]))?;
    assert!(
        shown.starts_with("Service  Startup  Current") && shown.contains("web      enabled  active"),
        "{shown}"
    );
    periapt.ok(pebble(&["stop", "web"]))?;
    assert!(periapt.ok(pebble(&["services", "web"]))?.contains("inactive"));
    periapt.ok(pebble(&["start", "web"]))?;
    assert!(periapt.ok(pebble(&["plan"]))?.contains("http.server"));
    periapt.ok(pebble(&["logs", "-n", "5", "web"]))?;
    assert!(periapt.ok(pebble(&["notices"]))?.contains("change-update"));
    let unknown = periapt.run(pebble(&["restart", "nosuch"]))?;
    let told = format!("{}{}", unknown.stdout, unknown.stderr);
    assert!(unknown.code == Some(1) && told.contains("nosuch"), "{unknown:?}");

    // A cancelled task ends its program.
    let (sleeps, began) = ("sleep 3607", Instant::now());
    periapt.run(exec(&["--background", "--", "sleep", "3607"]))?;
    until("the program runs", || Ok(!processes(&[sleeps])?.is_empty()))?;
    let running = ["operations", "--actions", "juju-exec", "--status", "running"];
    let tasks = periapt.json_until(&running, |tasks| tasks.as_object().is_some_and(|all| !all.is_empty()))?;
    let task = tasks.as_object().and_then(|all| all.values().next());
    let task = task.and_then(|task| task.pointer("/tasks")?.as_object()?.keys().next()).context("a task")?;
    periapt.ok(["cancel-task", task])?;
    until("it is killed", || Ok(processes(&[sleeps])?.is_empty()))?;
    assert!(began.elapsed() < Duration::from_secs(3_600));
    Ok(())
}

#[test]
fn a_task_in_a_container_reads_the_input_that_it_is_given_up_to_a_bound() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let (given, copied) = (periapt.path().join("given"), periapt.path().join("copied"));
    let fed = |words: &[&str]| {
        // An option for tasks makes it one.
        let task = ["exec", "-u", "probe/0", "--container", "web", "--wait", "300s"];
        let mut command = periapt.command(task);
        command.args(words).stdin(File::open(&given)?);
        Installation::finished(command)
    };
    // Any bytes, as many as there may be.
    let bytes = [0, b'a', 0xff, b'\n'].repeat(10_240);
    std::fs::write(&given, &bytes)?;
    let copy = format!("cat > {}; echo done", copied.display());
    let done = fed(&["-i", "--", "sh", "-c", &copy])?;
    assert_eq!((done.code, &*done.stdout), (Some(0), "done\n"), "{done:?}");
    assert!(std::fs::read(&copied)? == bytes, "another input has arrived");
    // A program may leave its input unread, and has none without the option.
    let unread = fed(&["--stdin", "--", "sh", "-c", "exit 0"])?;
    assert_eq!(unread.code, Some(0), "{unread:?}");
    let none = fed(&["--", "sh", "-c", "wc -c"])?;
    assert_eq!((none.code, none.stdout.trim()), (Some(0), "0"), "{none:?}");
    // The task keeps the input no longer than it runs.
    let tasks = periapt.json(["operations", "--actions", "juju-exec"])?;
    let parameters = tasks.as_object().into_iter().flat_map(|all| all.values());
    let parameters: Vec<&Value> = parameters.map(|one| &one["action"]["parameters"]).collect();
    assert!(parameters.iter().any(|one| one["command"] == json!(["sh", "-c", copy])), "{tasks}");
    assert!(parameters.iter().all(|one| one.get("stdin").is_none()), "{tasks}");
    std::fs::write(&given, [&bytes[..], b"x"].concat())?;
    let large = fed(&["-i", "--", "sh", "-c", &copy])?;
    assert_eq!(large.code, Some(1), "{large:?}");
    assert!(large.stderr.contains("standard input is larger than the limit of 40960 bytes"), "{large:?}");
    let script = periapt.run(["exec", "-u", "probe/0", "-i", "--", "is-leader"])?;
    assert!(script.code != Some(0) && script.stderr.contains("--container"), "{script:?}");
    Ok(())
}

#[test]
fn a_program_in_a_container_needs_write_access_and_is_in_the_audit_log() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    scene.boot_id()?;
    let jane = colleague(periapt, "jane")?;
    let file = periapt.path().join("touched");
    let path = file.to_str().context("a path")?;
    let touch = ["exec", "-m", "admin/test", "-u", "probe/0", "--container", "web", "--", "touch", path];
    periapt.ok(["grant", "jane", "read", "test"])?;
    let refused = jane.refused(touch)?;
    assert!(refused.contains("permission denied"), "{refused}");
    assert!(!file.exists(), "it has run");
    periapt.ok(["grant", "jane", "write", "test"])?;
    jane.ok(touch)?;
    assert!(file.exists(), "it has not run");
    // A script of hook tools does what the unit may do, and needs more.
    let script = jane.refused(["exec", "-m", "admin/test", "-u", "probe/0", "--", "is-leader"])?;
    assert!(script.contains("permission denied"), "{script}");

    let log = periapt.json(["audit-log"])?;
    let requests = log.as_array().into_iter().flatten().map(|entry| &entry["request"]);
    let of_jane =
        requests.filter(|request| request["user"] == "jane" && request["act"] == "enqueue-operation");
    let told: Vec<(&str, &Value)> = of_jane
        .filter_map(|request| Some((request["subject"].as_str()?.split_once(", ")?.1, &request["outcome"])))
        .collect();
    let subject =
        format!("action juju-exec, unit probe/0, container web, command 'touch' '{}'", file.display());
    let denied = json!({"refused": "permission-denied"});
    assert_eq!(
        told,
        [(&*subject, &denied), (&*subject, &json!("done")), ("action juju-exec, unit probe/0", &denied)],
        "{log}"
    );
    Ok(())
}
