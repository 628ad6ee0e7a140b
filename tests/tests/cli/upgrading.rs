//! A controller and agents that replace their program, and go back from one that does not come up or ends by itself.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_tests::{Installation, POLL_INTERVAL, RunningProcess, ends_at_once, patched, stripped, varied};
use serde_json::{Value, json};

/// Returns the first digits of a program's digest, as they are shown.
fn short(program: &Path) -> anyhow::Result<String> {
    Ok(Digest::of(&fs::read(program)?).short())
}

/// Returns a text of `show-controller`.
fn shown(periapt: &Installation, name: &str) -> anyhow::Result<String> {
    let shown = periapt.json(["show-controller"])?;
    let text = shown.pointer(&format!("/local/details/{name}")).and_then(Value::as_str);
    Ok(text.unwrap_or_default().to_owned())
}

/// Returns what the agent reports of its program.
fn program_of_agent(periapt: &Installation) -> anyhow::Result<Value> {
    let agents = periapt.json(["agents"])?;
    agents.pointer("/0/program").cloned().with_context(|| format!("{agents}"))
}

/// Waits until the agent runs a program, and not on trial.
fn agent_runs(periapt: &Installation, program: &Path) -> anyhow::Result<()> {
    let digest = Digest::of(&fs::read(program)?).to_string();
    let runs = |agents: &Value| {
        agents.pointer("/0/program").is_some_and(|it| it["digest"] == *digest && it.get("trial").is_none())
    };
    periapt.json_until(&["agents"], runs).map(drop)
}

/// Returns the file of a process's program.
fn file_of(process: u32) -> anyhow::Result<String> {
    Ok(fs::read_link(format!("/proc/{process}/exe"))?.to_string_lossy().into_owned())
}

#[test]
fn a_controller_and_its_agent_replace_their_program_and_an_installed_one_wins() -> anyhow::Result<()> {
    let mut periapt = Installation::empty()?;
    let first = stripped(periapt.path())?;
    let (second, third) = (varied(&first, "second")?, varied(&first, "third")?);
    periapt.install(first.clone());
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let (controller, agent) = (periapt.controller_process("local")?, periapt.agent_process("local")?);
    ensure!(shown(&periapt, "program")?.contains(&short(&first)?), "it runs the first one");

    let program = second.to_str().context("a path")?;
    let planned = periapt.ok(["upgrade-controller", "--program", program, "--dry-run"])?;
    ensure!(planned.contains(&short(&second)?) && planned.contains("upgrade-controller"), "{planned}");
    ensure!(shown(&periapt, "target-program")?.is_empty(), "nothing was set");
    for (bad, reason) in [("/bin/false", "is no program of Periapt"), ("/etc/passwd", "no executable")] {
        let refused = periapt.refused(["upgrade-controller", "--program", bad])?;
        ensure!(refused.contains(reason), "{refused}");
    }

    periapt.ok(["upgrade-controller", "--program", program])?;
    ensure!(shown(&periapt, "program")?.contains(&short(&second)?), "the controller runs the second one");
    agent_runs(&periapt, &second)?;
    periapt.ok(["add-unit", "mysql"])?;
    periapt.wait_for(["unit", "mysql/1"])?;
    for (process, before) in [("controller", controller), ("agent", agent)] {
        let file = file_of(before).with_context(|| format!("the {process} keeps its process"))?;
        ensure!(file.ends_with("/periapt") && file.contains("/programs/"), "{process}: {file}");
    }

    // Started by the installed program, they become the one that replaced it.
    periapt.ok(["controller", "stop", "local"])?;
    periapt.ok(["controller", "start", "local"])?;
    ensure!(shown(&periapt, "program")?.contains(&short(&second)?), "the second one goes on");
    ensure!(file_of(periapt.agent_process("local")?)?.contains("/programs/"), "the agent's, too");

    // Another one that an operator installs wins, though the second one is the target.
    periapt.ok(["controller", "stop", "local"])?;
    periapt.install(third.clone());
    periapt.ok(["controller", "start", "local"])?;
    agent_runs(&periapt, &third)?;
    periapt.ok(["add-unit", "mysql"])?;
    periapt.wait_for(["unit", "mysql/2"])?;
    ensure!(shown(&periapt, "program")?.contains(&short(&third)?), "the installed one stays");
    Ok(())
}

#[test]
fn what_does_not_come_up_is_replaced_by_the_program_before_and_the_failure_is_shown() -> anyhow::Result<()> {
    let mut periapt = Installation::empty()?;
    let first = stripped(periapt.path())?;
    periapt.install(first.clone());
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    periapt.ok(["add-model", "test"])?;
    let process = periapt.controller_process("local")?;

    // The controller goes back, and no agent is given the program.
    let ends = ends_at_once(periapt.path())?;
    let refused = periapt.refused(["upgrade-controller", "--program", ends.to_str().context("a path")?])?;
    ensure!(refused.contains("goes on with") && refused.contains("ended with exit status: 7"), "{refused}");
    let failed = shown(&periapt, "failed-program")?;
    ensure!(failed.starts_with(&short(&ends)?) && failed.contains("exit status: 7"), "{failed}");
    ensure!(shown(&periapt, "program")?.contains(&short(&first)?), "it goes on with the first one");
    ensure!(periapt.controller_process("local")? == process && file_of(process).is_ok(), "its process stays");
    ensure!(program_of_agent(&periapt)?.get("failed").is_none(), "the agent was given nothing");

    // Controllers come up with this one, and agents do not: they cannot read what they need of their host.
    let boot = "/proc/sys/kernel/random/boot_id";
    let half = patched(&first, "half", boot, &boot.replace("boot_id", "boot_no"))?;
    periapt.ok(["upgrade-controller", "--program", half.to_str().context("a path")?])?;
    let digest = Digest::of(&fs::read(&half)?).to_string();
    let has_failed =
        |agents: &Value| agents.pointer("/0/program/failed/digest").is_some_and(|failed| *failed == *digest);
    periapt.json_until(&["agents"], has_failed)?;
    let program = program_of_agent(&periapt)?;
    ensure!(program["digest"] == *Digest::of(&fs::read(&first)?).to_string(), "{program}");
    let table = periapt.ok(["agents"])?;
    ensure!(table.contains(&format!("{} failed", short(&half)?)), "{table}");
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let (message, machines) = (machine_message(&periapt)?, periapt.ok(["machines"])?);
    ensure!(message.starts_with(&format!("program {} failed: ", short(&half)?)), "{message}");
    ensure!(machines.contains(&message), "{machines}");

    // The next target is tried again.
    let good = varied(&first, "good")?;
    periapt.ok(["upgrade-controller", "--program", good.to_str().context("a path")?])?;
    agent_runs(&periapt, &good)?;
    ensure!(shown(&periapt, "failed-program")?.is_empty(), "nothing has failed any more");
    Ok(())
}

/// Returns the message of the agent on the machine 0.
fn machine_message(periapt: &Installation) -> anyhow::Result<String> {
    let status = periapt.json(["status"])?;
    let message = status.pointer("/machines/0/juju-status/message").and_then(Value::as_str);
    Ok(message.unwrap_or_default().to_owned())
}

/// Starts the agent `worker`, which has joined, and waits until it is registered.
fn start_worker(periapt: &Installation) -> anyhow::Result<RunningProcess> {
    let mut worker = spawn_worker(periapt)?;
    ensure!(worker.first_line()? == "ready worker");
    Ok(worker)
}

fn spawn_worker(periapt: &Installation) -> anyhow::Result<RunningProcess> {
    let listing = periapt.json(["controllers"])?;
    let url = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
    periapt.spawn(["agent", "run", "--controller", url, "--name", "worker", "--data", "worker"])
}

/// Waits until the agent `worker` runs a program and reports this failure of another one.
fn worker_runs(periapt: &Installation, program: &Path, failed: Option<&Path>) -> anyhow::Result<()> {
    let digest = |program: &Path| anyhow::Ok(Digest::of(&fs::read(program)?).to_string());
    let (runs, failed) = (digest(program)?, failed.map(digest).transpose()?);
    let does = |agents: &Value| {
        let program = agents.pointer("/1/program").unwrap_or(&Value::Null);
        let reported = program.pointer("/failed/digest").and_then(Value::as_str);
        program["digest"] == *runs && program.get("trial").is_none() && reported == failed.as_deref()
    };
    periapt.json_until(&["agents"], does).map(drop)
}

#[test]
fn an_agent_goes_back_from_a_program_that_ends_by_itself_again_and_again() -> anyhow::Result<()> {
    let mut periapt = Installation::empty()?;
    let first = stripped(periapt.path())?;
    let (second, third) = (varied(&first, "second")?, varied(&first, "third")?);
    periapt.install(first.clone());
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    periapt.ok(["add-model", "test"])?;
    let mut worker = periapt.agent("worker", [])?;
    ensure!(worker.first_line()? == "ready worker");
    periapt.ok(["upgrade-controller", "--program", second.to_str().context("a path")?])?;
    worker_runs(&periapt, &second, None)?;

    // Two ends by itself, and one in order, which does not count.
    for end in ["KILL", "TERM", "KILL"] {
        worker.end(end)?;
        worker = start_worker(&periapt)?;
        ensure!(file_of(worker.id())?.contains("/programs/"), "it goes on with the second one after {end}");
    }
    worker_runs(&periapt, &second, None)?;
    worker.end("KILL")?;
    worker = start_worker(&periapt)?;
    worker_runs(&periapt, &first, Some(&second))?;
    ensure!(file_of(worker.id())? == first.to_string_lossy(), "{}", file_of(worker.id())?);

    // It stays with the first one, though the second one is still the target.
    periapt.deploy("mysql", ["--to", "agent=worker"])?;
    periapt.wait_for(["model"])?;
    let message = machine_message(&periapt)?;
    let expected = format!("program {} failed: it ended by itself 3 times", short(&second)?);
    ensure!(message.starts_with(&expected), "{message}");
    worker.end("KILL")?;
    worker = start_worker(&periapt)?;
    worker_runs(&periapt, &first, Some(&second))?;
    periapt.ok(["add-unit", "mysql", "--to", "agent=worker"])?;
    periapt.wait_for(["model"])?;
    ensure!(file_of(worker.id())? == first.to_string_lossy(), "{}", file_of(worker.id())?);

    periapt.ok(["upgrade-controller", "--program", third.to_str().context("a path")?])?;
    worker_runs(&periapt, &third, None)
}

#[test]
fn an_agent_that_no_controller_answers_puts_a_trial_off_and_takes_the_program_later() -> anyhow::Result<()> {
    let mut periapt = Installation::empty()?;
    let first = stripped(periapt.path())?;
    let second = varied(&first, "second")?;
    periapt.install(first.clone());
    periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
    let mut worker = periapt.agent("worker", [])?;
    ensure!(worker.first_line()? == "ready worker");
    ensure!(worker.end("TERM")? == Some(0));
    periapt.ok(["upgrade-controller", "--program", second.to_str().context("a path")?])?;
    periapt.ok(["controller", "stop", "local"])?;

    // As if it had been told to stop when it began its trial.
    let digests = [&first, &second].map(fs::read).map(|file| file.map(|file| Digest::of(&file).to_string()));
    let [first_digest, second_digest] = digests;
    let (first_digest, second_digest) = (first_digest?, second_digest?);
    let (data, own) = (periapt.path().join("worker"), format!("programs/{second_digest}"));
    fs::create_dir_all(data.join(&own))?;
    fs::copy(&second, data.join(own).join("periapt"))?;
    let trial = json!({ "digest": second_digest, "number": 1 });
    let note = json!({ "installed": first_digest, "current": first_digest, "number": 1, "trial": trial });
    fs::write(data.join("program"), note.to_string())?;

    let mut worker = spawn_worker(&periapt)?;
    let noted = || anyhow::Ok(serde_json::from_slice::<Value>(&fs::read(data.join("program"))?)?);
    while noted()?.get("put-off").is_none() {
        std::thread::sleep(POLL_INTERVAL);
    }
    let note = noted()?;
    ensure!(note.get("failed").is_none() && note.get("trial").is_none(), "{note}");
    ensure!(file_of(worker.id())? == first.to_string_lossy(), "the first one waits for a controller");
    periapt.ok(["controller", "start", "local"])?;
    ensure!(worker.first_line()? == "ready worker");
    worker_runs(&periapt, &second, None)
}
