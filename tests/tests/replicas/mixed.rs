//! Controllers of two releases that share one log, and the upgrade from one to the other.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context as _, ensure};
use periapt_host_api::{LEVEL, Level};
use periapt_tests::{Installation, binary, packed_changed, previous_binary};
use serde_json::Value;

use crate::{
    callers::{Caller, History, REGISTER},
    rounds::{SetAtEnd, joined},
    shop::{facts, furnish, is_served, write_schema},
    site::{Site, controller, models, until},
    witness::Witness,
};

/// Returns the program of the previous release; none where this checkout has no history of it.
#[expect(clippy::print_stderr, reason = "a test that shows nothing says so")]
fn previous_program() -> anyhow::Result<Option<PathBuf>> {
    let program = previous_binary()?;
    if program.is_none() {
        eprintln!(
            "SKIPPED: this checkout has no history of the previous release; `git fetch --unshallow` gets it"
        );
    }
    Ok(program)
}

/// Returns an installation of this program.
fn installed(program: &Path) -> anyhow::Result<Installation> {
    let mut host = Installation::empty()?;
    host.install(program.to_owned());
    Ok(host)
}

/// Returns the level of what is stored, as a controller tells it; the first one from programs that tell none.
fn level(host: &Installation) -> anyhow::Result<Level> {
    let told = controller(host)?.pointer("/details/level").and_then(Value::as_u64);
    Ok(told.and_then(|level| u32::try_from(level).ok()).map_or(Level::FIRST, Level))
}

/// Stops the controller of a host and starts it with the program that is built here.
fn upgrade(site: &mut Site, number: usize) -> anyhow::Result<()> {
    site.host(number)?.ok(["controller", "stop", "local"])?;
    let host = site.hosts.get_mut(number).and_then(Arc::get_mut).context("a host of this test alone")?;
    host.install(binary()?);
    host.ok(["controller", "start", "local"])?;
    Ok(())
}

#[test]
fn two_releases_share_a_log_and_the_level_rises_once_the_last_controller_is_upgraded() -> anyhow::Result<()> {
    let Some(previous) = previous_program()? else { return Ok(()) };
    let mut site = Site::bootstrapped_on(installed(&previous)?, &[])?;
    site.join_on(installed(&previous)?, "two")?;
    site.join_on(Installation::empty()?, "three")?;
    site.host(0)?.ok(["add-model", "a"])?;
    site.host(2)?.ok(["add-model", "b"])?;
    for host in &site.hosts {
        until("the same models everywhere", || Ok(models(host)? == ["a", "b"]))?;
    }

    // The newer program leads, and writes nothing that the older one does not read.
    site.host(0)?.ok(["controller", "stop", "local"])?;
    until("another controller leads", || Ok(matches!(site.leader(2)?, Some(1 | 2))))?;
    if site.leader(2)? == Some(1) {
        site.host(1)?.ok(["controller", "stop", "local"])?;
        until("the newer program leads", || Ok(site.leader(2)? == Some(2)))?;
        site.host(1)?.ok(["controller", "start", "local"])?;
    }
    site.host(2)?.ok(["add-model", "c"])?;
    site.host(1)?.ok(["add-model", "d"])?;
    until("the older program follows", || Ok(models(site.host(1)?)? == ["a", "b", "c", "d"]))?;
    ensure!(level(site.host(2)?)? == Level::FIRST, "one controller does not know the next level");

    upgrade(&mut site, 1)?;
    site.host(1)?.ok(["add-model", "e"])?;
    // The first one is away, with the old program, and is waited for.
    ensure!(level(site.host(2)?)? == Level::FIRST, "a controller that is away does not know the next level");
    site.host(0)?.ok(["controller", "start", "local"])?;
    until("it has come back", || Ok(models(site.host(0)?)? == ["a", "b", "c", "d", "e"]))?;
    upgrade(&mut site, 0)?;
    until("the level rises", || Ok(level(site.host(0)?)? == LEVEL))?;
    for host in &site.hosts {
        until("all controllers know it", || Ok(level(host)? == LEVEL))?;
    }
    site.host(1)?.ok(["add-model", "f"])?;

    // There is no way back: a program that is too old writes nothing.
    site.host(1)?.ok(["controller", "stop", "local"])?;
    let mut older = site.hosts.remove(1);
    let host = Arc::get_mut(&mut older).context("a host of this test alone")?;
    host.install(previous);
    let done = host.run(["controller", "start", "local"])?;
    ensure!(done.code != Some(0), "a program that is too old does not start: {done:?}");
    // The first level's programs know no other; later ones say which they need.
    let (told, reasons) = (&done.stderr, ["the digest is none", "use a newer periapt"]);
    ensure!(reasons.iter().any(|reason| told.contains(reason)), "{told}");
    host.install(binary()?);
    host.ok(["controller", "start", "local"])?;
    until("it has come back", || Ok(models(host)? == ["a", "b", "c", "d", "e", "f"]))
}

/// Upgrades all controllers of a site, one after the other, and waits each time until callers are answered.
fn upgrade_all(site: &mut Site, history: &History) -> anyhow::Result<()> {
    let go_on = || {
        let before = history.written();
        until("writes are acknowledged", || Ok(history.written() > before + 5))
    };
    go_on()?;
    for number in 0..3 {
        upgrade(site, number)?;
        go_on()?;
    }
    until("the level rises", || Ok(level(site.host(0)?)? == LEVEL))?;
    go_on()
}

#[test]
fn three_controllers_of_the_previous_release_are_upgraded_one_by_one_under_load() -> anyhow::Result<()> {
    let Some(previous) = previous_program()? else { return Ok(()) };
    let mut site = Site::bootstrapped_on(installed(&previous)?, &["--no-agent"])?;
    site.join_on(installed(&previous)?, "two")?;
    site.join_on(installed(&previous)?, "three")?;
    site.host(0)?.ok(["add-model", REGISTER])?;
    for host in &site.hosts {
        until("the model is everywhere", || Ok(models(host)? == [REGISTER]))?;
    }

    let sockets: Vec<PathBuf> = site.hosts.iter().map(|host| host.socket("local")).collect();
    let (history, log) = (History::default(), site.etcd.url());
    let (has_ended, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let callers = (0..3).map(|number| Caller::new(number, &sockets, &history));
    let callers = callers.collect::<anyhow::Result<Vec<_>>>()?;
    let witness = thread::scope(|scope| -> anyhow::Result<Witness> {
        let _ends = (SetAtEnd(&has_ended), SetAtEnd(&is_over));
        let witness = scope.spawn(|| Witness::follow(log, &is_over));
        let has_ended = &has_ended;
        let callers = callers.into_iter().map(|caller| scope.spawn(move || caller.run(has_ended)));
        let callers: Vec<_> = callers.collect();
        let upgraded = upgrade_all(&mut site, &history);
        has_ended.store(true, Ordering::SeqCst);
        let called: Vec<_> = callers.into_iter().map(|caller| joined(caller, "a caller")).collect();
        is_over.store(true, Ordering::SeqCst);
        let witness = joined(witness, "the reader of the log");
        upgraded?;
        called.into_iter().collect::<anyhow::Result<()>>()?;
        witness
    })?;
    let (writes, reads) = witness.check(&history.calls())?;
    ensure!(writes > 0 && reads > 0, "the callers had something to do");
    Ok(())
}

/// A destination that workloads are granted, which programs of level 1 do not know.
const GRANTED: &str = "203.0.113.0/24:443";

/// Packs a charm with a container, which programs of level 1 check and do not keep.
fn charm_with_container(host: &Installation) -> anyhow::Result<String> {
    let change = |text: &str| format!("{text}\ncontainers:\n  side: {{}}\n");
    let archive = packed_changed("mysql", "contained", host.path(), change)?;
    Ok(archive.to_str().context("a path")?.to_owned())
}

/// Returns true if `show-unit` shows the container of that charm.
fn has_container(host: &Installation, unit: &str) -> anyhow::Result<bool> {
    let shown = host.json(["show-unit", unit])?;
    let unit = shown.get(unit).with_context(|| format!("no {unit} in {shown}"))?;
    Ok(unit.pointer("/containers/side").is_some())
}

/// Checks that both controllers show the same of the shop, and that the newer one refuses what the level has not yet: a
/// destination that workloads are granted, and the charm with a container.
fn shows_the_same_and_nothing_newer(site: &Site, charm: &str) -> anyhow::Result<()> {
    let (older, newer) = (site.host(0)?, site.host(1)?);
    until("both controllers show the same", || Ok(facts(older)? == facts(newer)?))?;
    let told = "this needs level 2 of what controllers store, and it is 1: it rises once the program of each \
                controller is upgraded";
    let grant = format!("workload-egress={GRANTED}");
    for refused in [&["model-config", &grant][..], &["deploy", charm, "late"]] {
        let error = newer.refused(refused)?;
        ensure!(error.contains(told), "{refused:?}: {error}");
    }
    ensure!(!has_container(newer, "early/0")?, "the older program keeps no containers");
    ensure!(level(newer)? == Level::FIRST, "one controller does not know the next level");
    Ok(())
}

#[test]
fn two_releases_share_all_that_a_model_has_and_what_is_new_waits_for_the_last_upgrade() -> anyhow::Result<()>
{
    let Some(previous) = previous_program()? else { return Ok(()) };
    let mut site = Site::bootstrapped_on(installed(&previous)?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    // Agents are upgraded after the controllers.
    let mut agent = site.host(0)?.agent("first", [])?;
    ensure!(agent.first_line()? == "ready first", "the agent runs");

    // The older program leads, and the newer one passes commands on.
    until("the older program leads", || Ok(site.leader(1)? == Some(0)))?;
    furnish(site.host(0)?)?;
    let newer = site.host(1)?;
    newer.ok(["switch", "shop"])?;
    newer.ok(["config", "mysql", "max-connections=200"])?;
    newer.ok(["add-unit", "mysql"])?;
    newer.wait_for(["unit", "mysql/1", "--status", "active"])?;
    let charm = charm_with_container(site.host(0)?)?;
    site.host(0)?.ok(["deploy", &charm, "early"])?;
    newer.wait_for(["unit", "early/0", "--status", "active"])?;
    shows_the_same_and_nothing_newer(&site, &charm)?;

    // The newer program leads, alone at first, and the older one passes commands on.
    site.host(0)?.ok(["controller", "stop", "local"])?;
    until("the newer program leads", || Ok(site.leader(1)? == Some(1)))?;
    site.host(1)?.ok(["config", "wordpress", "blog-title=Dogs"])?;
    let older = site.host(0)?;
    older.ok(["controller", "start", "local"])?;
    older.ok(["config", "mysql", "max-connections=300"])?;
    older.ok(["update-secret", "password", "password=hunter4"])?;
    write_schema(older, "two")?;
    older.ok(["attach-resource", "mysql", "schema=schema.sql"])?;
    older.ok(["grant", "jane", "write", "shop"])?;
    is_served(older)?;
    shows_the_same_and_nothing_newer(&site, &charm)?;
    let told = facts(site.host(0)?)?.join("\n");
    for part in ["300", "Dogs", "write"] {
        ensure!(told.contains(part), "{part} is not in {told}");
    }

    upgrade(&mut site, 0)?;
    for host in &site.hosts {
        until("the level rises", || Ok(level(host)? == LEVEL))?;
    }
    site.host(1)?.ok(["model-config", &format!("workload-egress={GRANTED}")])?;
    let first = site.host(0)?;
    until("the other one shows it", || Ok(first.ok(["model-config", "workload-egress"])?.contains(GRANTED)))?;
    for host in &site.hosts {
        until("the model is as it was", || Ok(facts(host)?.join("\n") == told))?;
    }
    is_served(first)?;

    // The archive is read again, also for the application that the older program deployed it for.
    first.ok(["deploy", &charm, "late"])?;
    for host in &site.hosts {
        for unit in ["early/0", "late/0"] {
            // A follower may not have applied the deployment yet.
            until("the container is shown", || Ok(has_container(host, unit).unwrap_or(false)))?;
        }
    }
    Ok(())
}

#[test]
fn the_level_of_one_controller_rises_when_a_newer_program_starts() -> anyhow::Result<()> {
    let Some(previous) = previous_program()? else { return Ok(()) };
    let mut host = installed(&previous)?;
    host.ok(["bootstrap", "local"])?;
    host.ok(["add-model", "a"])?;
    host.ok(["controller", "stop", "local"])?;
    host.install(binary()?);
    host.ok(["controller", "start", "local"])?;
    until("the level rises", || Ok(level(&host)? == LEVEL))?;
    ensure!(models(&host)? == ["a"], "the model is there");
    Ok(())
}

#[test]
fn a_container_that_the_previous_release_dropped_comes_with_the_next_deployment() -> anyhow::Result<()> {
    let Some(previous) = previous_program()? else { return Ok(()) };
    let mut host = installed(&previous)?;
    host.ok(["bootstrap", "local", "--no-agent"])?;
    host.ok(["add-model", "a"])?;
    let charm = charm_with_container(&host)?;
    host.ok(["deploy", &charm, "early"])?;
    host.ok(["controller", "stop", "local"])?;
    host.install(binary()?);
    host.ok(["controller", "start", "local"])?;
    until("the level rises", || Ok(level(&host)? == LEVEL))?;
    ensure!(!has_container(&host, "early/0")?, "it was not stored");
    for application in ["late", "last"] {
        host.ok(["deploy", &charm, application])?;
        for unit in ["early/0", &format!("{application}/0")] {
            ensure!(has_container(&host, unit)?, "{unit} has its container");
        }
    }
    Ok(())
}
