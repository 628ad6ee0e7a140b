//! Models that migrate to another controller with their units going on, and what interrupts them.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, RunningProcess, signal};
use serde_json::Value;

use crate::{interrupted::until, secrets::logged};

/// Starts the controllers `local` and `other`, and an agent "first" of the first one, with a model `test`.
fn both() -> anyhow::Result<(Installation, RunningProcess)> {
    let periapt = Installation::empty()?;
    for name in ["other", "local"] {
        periapt.ok(["bootstrap", name, "--no-agent"])?;
    }
    let mut agent = periapt.agent("first", [])?;
    assert_eq!(agent.first_line()?, "ready first");
    periapt.ok(["add-model", "test"])?;
    Ok((periapt, agent))
}

/// Starts the agent once more, with the address of a controller and without a token.
fn again(periapt: &Installation, controller: &str) -> anyhow::Result<RunningProcess> {
    let arguments = ["agent", "run", "--name", "first", "--data", "first", "--controller", controller];
    let mut agent = periapt.spawn(arguments)?;
    ensure!(agent.first_line()? == "ready first", "the agent runs");
    Ok(agent)
}

/// Returns the committed hooks of a unit by the number of the commit from which each began. A number that is there twice is
/// an error.
fn hooks(periapt: &Installation, model: &str, unit: &str) -> anyhow::Result<BTreeMap<u64, String>> {
    let listed = periapt.json(["hooks", "-m", model, unit])?;
    let mut hooks = BTreeMap::new();
    for entry in listed.get("entries").and_then(Value::as_array).context("entries")? {
        let record = entry.get("record").context("record")?;
        let shown = |name: &str| record.get(name).map(Value::to_string).unwrap_or_default();
        ensure!(shown("outcome").contains("handled"), "a hook failed: {record}");
        let event = shown("event");
        let before = hooks.insert(record.get("seq").and_then(Value::as_u64).context("seq")?, event.clone());
        ensure!(before.is_none(), "{before:?} and {event} began from one commit");
    }
    Ok(hooks)
}

/// Returns the number of hooks that a unit has counted in its own bag.
fn counted(periapt: &Installation, model: &str, unit: &str) -> anyhow::Result<usize> {
    let shown = periapt.json(["show-unit", "-m", model, unit])?.to_string();
    let after = shown.split("\"hooks\":\"").nth(1).with_context(|| format!("no count in {shown}"))?;
    Ok(after.split('"').next().unwrap_or_default().parse()?)
}

/// The unit `busy/0`, which runs a hook each second and counts its hooks. The controller keeps no more than a unit's newest
/// hooks, so what is listed is gathered at each look.
struct Busy {
    seen: BTreeMap<u64, String>,
    /// The first hooks, which were not counted: the bag was not there yet.
    uncounted: usize,
}

impl Busy {
    /// Deploys the unit, and waits until it has run some hooks.
    fn deploy(periapt: &Installation) -> anyhow::Result<Self> {
        periapt.ok(["model-config", "update-status-hook-interval=1s"])?;
        periapt.deploy("probe", ["busy", "--config", "count=true"])?;
        let mut busy = Self { seen: BTreeMap::new(), uncounted: 0 };
        busy.counts_on(periapt, "local:test", 3)?;
        busy.uncounted = busy.uncounted(periapt, "local:test")?;
        Ok(busy)
    }

    /// Gathers the hooks that are listed now. A slow test looks more often than the controller forgets hooks.
    fn look(&mut self, periapt: &Installation, model: &str) -> anyhow::Result<()> {
        self.seen.extend(hooks(periapt, model, "busy/0")?);
        Ok(())
    }

    /// Returns the number of hooks that committed and were not counted, as they stand at one moment.
    fn uncounted(&mut self, periapt: &Installation, model: &str) -> anyhow::Result<usize> {
        loop {
            self.look(periapt, model)?;
            let (before, count) = (self.seen.len(), counted(periapt, model, "busy/0")?);
            self.look(periapt, model)?;
            if self.seen.len() == before {
                return before.checked_sub(count).with_context(|| format!("{before} hooks, {count} counted"));
            }
        }
    }

    /// Waits until the unit has run more hooks.
    fn counts_on(&mut self, periapt: &Installation, model: &str, more: usize) -> anyhow::Result<()> {
        let before = counted(periapt, model, "busy/0").unwrap_or_default();
        until("hooks run", || {
            thread::sleep(Duration::from_millis(200));
            Ok(counted(periapt, model, "busy/0").is_ok_and(|now| now >= before + more))
        })?;
        self.look(periapt, model)
    }

    /// Checks that each hook which has committed since was counted once.
    fn audit(&mut self, periapt: &Installation, model: &str) -> anyhow::Result<()> {
        let (before, now) = (self.uncounted, self.uncounted(periapt, model)?);
        ensure!(now == before, "{now} hooks were not counted, and {before} before");
        Ok(())
    }
}

#[test]
fn a_model_migrates_with_its_units_going_on_and_nothing_is_lost_or_doubled() -> anyhow::Result<()> {
    let (periapt, agent) = both()?;
    let mut busy = Busy::deploy(&periapt)?;
    periapt.deploy("probe", ["owner", "--config", "script=db-relation-created: share password=first-one"])?;
    fs::write(periapt.path().join("data.txt"), "rows of data")?;
    let script = "script=*: open\n*: open-token\nupgrade-charm: resource data";
    periapt.deploy("probe", ["reader", "--config", script, "--resource", "data=data.txt"])?;
    periapt.deploy(
        "probe",
        ["stored", "--storage", "scratch=10M", "--config", "script=start: write /srv/scratch/note=hello"],
    )?;
    periapt.ok(["integrate", "owner:db", "reader:sink"])?;
    logged(&periapt, "reader/0", "opened password=first-one")?;
    periapt.ok(["add-secret", "token", "token=hunter2"])?;
    let before = hooks(&periapt, "local:test", "owner/0")?;
    let uuid = periapt.json(["show-model", "test"])?["test"]["model-uuid"].clone();

    periapt.ok(["migrate", "test", "other", "--check"])?;
    let done = periapt.run(["migrate", "test", "other"])?;
    assert_eq!(done.code, Some(0), "{done:?}\n{}", periapt.logs());
    for told in ["Migration started with ID \"", "The model has moved to controller other"] {
        assert!(done.stderr.contains(told), "{done:?}");
    }

    // The earlier controller only tells where it has gone.
    let error = periapt.refused(["status", "-m", "local:test"])?;
    assert!(error.contains("model \"test\" has moved to the controller at https://"), "{error}");
    assert!(periapt.json(["models", "-c", "local"])?["models"].as_array().is_some_and(Vec::is_empty));
    // What was there is there.
    assert_eq!(periapt.json(["show-model", "other:test"])?["test"]["model-uuid"], uuid);
    assert!(periapt.ok(["show-secret", "-m", "other:test", "token", "--reveal"])?.contains("hunter2"));
    for (seq, event) in before {
        assert_eq!(hooks(&periapt, "other:test", "owner/0")?.get(&seq), Some(&event));
    }
    periapt.json_until(&["agents", "-c", "other"], |agents| agents[0]["alive"] == true)?;
    busy.counts_on(&periapt, "other:test", 2)?;
    // Hooks go on with secrets, resources, storage and relations.
    periapt.ok(["switch", "other:test"])?;
    periapt.ok(["config", "owner", "script=config-changed: revise password=second-one"])?;
    logged(&periapt, "reader/0", "opened password=second-one")?;
    fs::write(periapt.path().join("data.txt"), "more rows")?;
    periapt.ok(["attach-resource", "reader", "data=data.txt"])?;
    logged(&periapt, "reader/0", "more rows")?;
    periapt.ok(["config", "stored", "script=config-changed: read /srv/scratch/note"])?;
    logged(&periapt, "stored/0", "read /srv/scratch/note: hello")?;
    periapt.ok(["add-unit", "reader"])?;
    logged(&periapt, "reader/1", "opened password=second-one")?;
    busy.audit(&periapt, "other:test")?;

    // The agent belongs to the other controller from now on, and comes back there.
    assert_eq!(agent.end("TERM")?, Some(0));
    periapt.ok(["controller", "stop", "local"])?;
    let _agent = again(&periapt, "https://127.0.0.1:1")?;
    busy.counts_on(&periapt, "other:test", 1)?;

    // It comes back once the earlier controller has forgotten it.
    periapt.ok(["controller", "start", "local"])?;
    let error = periapt.refused(["migrate", "other:test", "local"])?;
    assert!(error.contains("end that with `migrate --forget` here first"), "{error}");
    let error = periapt.refused(["migrate", "local:test", "--forget"])?;
    assert!(error.contains("was connected here a moment ago"), "a controller that has just started: {error}");
    periapt.ok(["migrate", "local:test", "--forget", "--force"])?;
    until("it is forgotten", || {
        Ok(periapt.run(["migrate", "other:test", "local", "--check"])?.code == Some(0))
    })?;
    periapt.ok(["migrate", "other:test", "local"])?;
    busy.counts_on(&periapt, "local:test", 2)?;
    busy.audit(&periapt, "local:test")
}

#[test]
fn what_cannot_migrate_is_one_error_and_stays_as_it_was() -> anyhow::Result<()> {
    let (periapt, _agent) = both()?;
    periapt.deploy("probe", [])?;
    let refused = |expected: &str| -> anyhow::Result<()> {
        let error = periapt.refused(["migrate", "local:test", "other"])?;
        ensure!(error.contains(expected), "{error}");
        periapt.ok(["model-config", "-m", "local:test", "update-status-hook-interval=5m"]).map(drop)
    };
    let error = periapt.refused(["migrate", "test", "local"])?;
    assert!(error.contains("it is on this controller already"), "{error}");

    periapt.ok(["add-model", "-c", "other", "test"])?;
    refused("user admin has a model of this name here already")?;
    periapt.ok(["destroy-model", "other:test", "--no-prompt"])?;

    periapt.ok(["switch", "local:test"])?;
    periapt.ok(["add-user", "jane"])?;
    periapt.ok(["grant", "jane", "read", "test"])?;
    refused("users who may use it are not known here: jane")?;
    periapt.ok(["revoke", "jane", "read", "test"])?;

    periapt.ok(["offer", "probe:db"])?;
    refused("it offers \"probe\" to other models")?;
    periapt.ok(["remove-offer", "test.probe", "--no-prompt"])?;

    periapt.ok(["add-model", "second"])?;
    periapt.deploy("probe", ["beside"])?;
    refused("agent \"first\" serves model \"second\" as well")?;
    periapt.ok(["destroy-model", "second", "--no-prompt"])?;
    periapt.ok(["switch", "local:test"])?;

    periapt.ok(["controller", "stop", "other"])?;
    let error = periapt.refused(["migrate", "test", "other"])?;
    assert!(error.starts_with("ERROR "), "{error}");
    assert!(periapt.ok(["status"])?.contains("probe/0"));
    periapt.ok(["controller", "start", "other"])?;
    periapt.ok(["migrate", "test", "other"])?;
    Ok(())
}

/// Begins a migration, and returns once it has begun.
fn begun(periapt: &Installation) -> anyhow::Result<Child> {
    let mut command = periapt.command(["migrate", "local:test", "other"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut told = String::new();
    let mut lines = BufReader::new(child.stderr.take().context("standard error")?);
    while !told.contains("Migration started") {
        ensure!(lines.read_line(&mut told)? > 0, "it did not begin: {told}");
    }
    // The rest is read, so that nothing is held up.
    thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    Ok(child)
}

fn serves(periapt: &Installation, controller: &str) -> anyhow::Result<bool> {
    Ok(periapt.run(["show-unit", "-m", &format!("{controller}:test"), "busy/0"])?.code == Some(0))
}

/// Attaches content that takes a while to be carried.
fn attach_much(periapt: &Installation) -> anyhow::Result<()> {
    fs::write(periapt.path().join("data.txt"), vec![b'x'; 96 << 20])?;
    periapt.ok(["attach-resource", "busy", "data=data.txt"]).map(drop)
}

/// Interrupts migrations from controller `local` to controller `other` at several moments by killing the command (`cli`) or a
/// controller, and checks that one controller serves the model at each moment and that the migration can be completed.
fn interrupted_migrations_complete(victim: &str) -> anyhow::Result<()> {
    for (after, carries_much) in [(0, true), (300, false), (900, true)] {
        let (periapt, _agent) = both()?;
        let mut busy = Busy::deploy(&periapt)?;
        if carries_much {
            attach_much(&periapt)?;
        }
        let mut migrating = begun(&periapt)?;
        thread::sleep(Duration::from_millis(after));
        match victim {
            "cli" => signal(migrating.id(), "KILL").or_else(|_| anyhow::Ok(()))?,
            controller => {
                signal(periapt.controller_process(controller)?, "KILL")?;
                thread::sleep(Duration::from_millis(300));
                periapt.ok(["controller", "start", controller])?;
            }
        }
        let _ = migrating.wait();
        until("one controller serves the model", || {
            let status = periapt.run(["migrate", "local:test", "other"])?;
            let _ = busy.look(&periapt, "local:test").or_else(|_| busy.look(&periapt, "other:test"));
            thread::sleep(Duration::from_millis(200));
            // The model may move between the two looks. So the controller that it leaves is asked last.
            let there = serves(&periapt, "other")?;
            let here = serves(&periapt, "local")?;
            ensure!(!(here && there), "both controllers serve it: {status:?}");
            Ok(there)
        })
        .with_context(|| format!("{victim} after {after} ms\n{}", periapt.logs()))?;
        busy.counts_on(&periapt, "other:test", 2)?;
        busy.audit(&periapt, "other:test").with_context(|| format!("{victim} after {after} ms"))?;
    }
    Ok(())
}

#[test]
fn a_migration_whose_command_is_killed_leaves_one_controller_that_serves() -> anyhow::Result<()> {
    interrupted_migrations_complete("cli")
}

#[test]
fn a_migration_from_a_controller_that_is_killed_leaves_one_controller_that_serves() -> anyhow::Result<()> {
    interrupted_migrations_complete("local")
}

#[test]
fn a_migration_to_a_controller_that_is_killed_leaves_one_controller_that_serves() -> anyhow::Result<()> {
    interrupted_migrations_complete("other")
}

#[test]
fn an_operator_ends_a_migration_and_the_model_stays() -> anyhow::Result<()> {
    let (periapt, _agent) = both()?;
    let mut busy = Busy::deploy(&periapt)?;
    attach_much(&periapt)?;
    let mut migrating = begun(&periapt)?;
    let other = periapt.controller_process("other")?;
    signal(other, "STOP")?;
    let aborted = periapt.run(["migrate", "local:test", "--abort"]);
    signal(other, "CONT")?;
    let aborted = aborted?;
    assert_eq!(aborted.code, Some(0), "{aborted:?}");
    assert_eq!(migrating.wait()?.code(), Some(1));
    busy.counts_on(&periapt, "local:test", 2)?;
    assert!(periapt.json(["models", "-c", "other"])?["models"].as_array().is_some_and(Vec::is_empty));
    // What came of it is deleted, and the model can go once more.
    until("it goes", || {
        thread::sleep(Duration::from_secs(1));
        busy.look(&periapt, "local:test")?;
        Ok(periapt.run(["migrate", "local:test", "other"])?.code == Some(0))
    })?;
    busy.counts_on(&periapt, "other:test", 2)?;
    busy.audit(&periapt, "other:test")?;
    let error = periapt.refused(["migrate", "other:test", "--abort"])?;
    assert!(error.contains("the model is not migrating"), "{error}");
    let value: Value = periapt.json(["agents", "-c", "other"])?;
    assert_eq!(value[0]["alive"], true);
    Ok(())
}

#[test]
fn an_agent_that_was_away_follows_its_model_from_one_controller_to_the_next() -> anyhow::Result<()> {
    let (periapt, agent) = both()?;
    periapt.ok(["bootstrap", "third", "--no-agent"])?;
    periapt.ok(["switch", "local:test"])?;
    let mut busy = Busy::deploy(&periapt)?;
    assert_eq!(agent.end("TERM")?, Some(0));
    periapt.ok(["migrate", "local:test", "other"])?;
    periapt.ok(["migrate", "other:test", "third"])?;

    let listing = periapt.json(["controllers"])?;
    let earlier = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
    let agent = again(&periapt, earlier)?;
    busy.counts_on(&periapt, "third:test", 2)?;
    busy.audit(&periapt, "third:test")?;
    for controller in ["local", "other"] {
        assert!(!serves(&periapt, controller)?, "controller {controller}");
    }

    // Without the controllers that it knew first, it finds the last one.
    assert_eq!(agent.end("TERM")?, Some(0));
    for controller in ["local", "other"] {
        periapt.ok(["controller", "stop", controller])?;
    }
    let _agent = again(&periapt, earlier)?;
    busy.counts_on(&periapt, "third:test", 1)
}
