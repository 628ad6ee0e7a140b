//! A controller and an agent that replace their program, and go back from one that does not come up.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_tests::{Installation, ends_at_once, patched, stripped, varied};
use serde_json::Value;

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

    // The next target is tried again.
    let good = varied(&first, "good")?;
    periapt.ok(["upgrade-controller", "--program", good.to_str().context("a path")?])?;
    agent_runs(&periapt, &good)?;
    ensure!(shown(&periapt, "failed-program")?.is_empty(), "nothing has failed any more");
    Ok(())
}
