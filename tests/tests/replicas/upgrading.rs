//! Three controllers and an agent that replace their program under a loop of commands.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_tests::{Installation, ends_at_once, stripped, varied};
use serde_json::Value;
use tempfile::TempDir;

use crate::site::{Site, controller, models, until};

/// Returns what each controller runs, and which program it did not take, by its name as this host knows it.
fn programs(host: &Installation) -> anyhow::Result<Vec<(String, String, String)>> {
    let shown = controller(host)?;
    let members = shown.pointer("/details/controller-machines").and_then(Value::as_object);
    let text =
        |member: &Value, name: &str| member.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let member = |(name, member): (&String, &Value)| {
        (name.clone(), text(member, "program"), text(member, "failed-program"))
    };
    Ok(members.context("members")?.iter().map(member).collect())
}

fn short(program: &Path) -> anyhow::Result<String> {
    Ok(Digest::of(&fs::read(program)?).short())
}

/// Makes models until it is told to end, and returns those that were acknowledged.
fn make_models(host: &Installation, ended: &AtomicBool) -> anyhow::Result<Vec<String>> {
    let mut made = Vec::new();
    for number in 0.. {
        if ended.load(Ordering::SeqCst) {
            break;
        }
        let name = format!("m{number}");
        if host.run(["add-model", &name, "--no-switch"])?.code == Some(0) {
            made.push(name);
        }
    }
    Ok(made)
}

#[test]
fn three_controllers_and_an_agent_are_upgraded_under_load_and_a_bad_program_stops_at_the_first()
-> anyhow::Result<()> {
    // Outlives the hosts, whose controllers the program ends.
    let directory = TempDir::new()?;
    let mut first = Installation::empty()?;
    let program = stripped(directory.path())?;
    let (second, bad) = (varied(&program, "second")?, ends_at_once(directory.path())?);
    let installed = || -> anyhow::Result<Installation> {
        let mut host = Installation::empty()?;
        host.install(program.clone());
        Ok(host)
    };
    first.install(program.clone());
    let mut site = Site::bootstrapped_on(first, &["--agent-name", "first"])?;
    site.join_on(installed()?, "two")?;
    site.join_on(installed()?, "three")?;
    let mut keeping = site.host(0)?.agent("keeps", ["--keep-program"])?;
    ensure!(keeping.first_line()? == "ready keeps");
    let host = site.host(1)?;
    host.ok(["add-model", "load"])?;
    host.deploy("mysql", [])?;
    host.wait_for(["model"])?;
    let runs = |program: &Path| -> anyhow::Result<bool> {
        let expected = short(program)?;
        let all = programs(host)?;
        Ok(all.len() == 3 && all.iter().all(|(_, runs, _)| runs.contains(&expected)))
    };
    until("all controllers tell their program", || runs(&program))?;

    let ended = AtomicBool::new(false);
    let made = thread::scope(|scope| {
        let making = scope.spawn(|| make_models(site.host(2)?, &ended));
        let upgraded = host.ok(["upgrade-controller", "--program", second.to_str().context("a path")?]);
        ended.store(true, Ordering::SeqCst);
        let made = making.join().map_err(|_| anyhow::anyhow!("the client panicked"))?;
        upgraded.and(made)
    })?;
    ensure!(!made.is_empty(), "commands were carried out");
    until("all controllers run the second program", || runs(&second))?;
    for host in &site.hosts {
        until("nothing that was acknowledged is lost", || {
            let seen = models(host)?;
            Ok(made.iter().all(|model| seen.contains(model)))
        })?;
    }
    let digest = Digest::of(&fs::read(&second)?).to_string();
    until("the agent follows", || {
        let agents = host.json(["agents"])?;
        let program = agents.pointer("/0/program").context("the agent's program")?;
        Ok(program["digest"] == *digest && program.get("trial").is_none())
    })?;
    let kept = fs::read_link(format!("/proc/{}/exe", keeping.id()))?;
    ensure!(kept == program, "an agent that keeps its program runs {}", kept.display());
    ensure!(host.json(["agents"])?.pointer("/1/alive") == Some(&Value::Bool(true)), "and is at work");
    host.ok(["add-unit", "-m", "load", "mysql"])?;
    host.wait_for(["unit", "-m", "load", "mysql/1"])?;

    let refused = host.refused(["upgrade-controller", "--program", bad.to_str().context("a path")?])?;
    ensure!(refused.contains("ended with exit status: 7"), "{refused}");
    let (expected, failed) = (short(&second)?, short(&bad)?);
    until("it is back", || Ok(programs(host)?.iter().any(|(_, _, why)| why.starts_with(&failed))))?;
    let all = programs(host)?;
    ensure!(all.iter().all(|(_, runs, _)| runs.contains(&expected)), "{all:?}");
    ensure!(
        all.iter().filter(|(_, _, why)| why.starts_with(&failed)).count() == 1,
        "only one tried it: {all:?}"
    );
    host.ok(["add-model", "after"])?;
    Ok(())
}
