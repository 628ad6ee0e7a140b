//! A set of controllers that is lost with its log: a backup begins a new set, and the agents come back to it.

use std::{fs, sync::Arc};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::{Installation, RunningProcess};
use serde_json::Value;

use crate::site::{Site, archives, controller, models, until};

/// Returns true if a controller knows the agent "first" as connected.
fn has_agent(host: &Installation) -> anyhow::Result<bool> {
    let agents: Value = serde_json::from_str(&host.ok(["agents", "--format", "json"])?)?;
    Ok(agents.pointer("/0/alive").and_then(Value::as_bool) == Some(true))
}

/// Starts two controllers, and an agent "first" apart from them with a unit of the application "app".
fn two_with_a_unit() -> anyhow::Result<(Site, Arc<Installation>, RunningProcess)> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    let first = Arc::clone(site.hosts.first().context("a host")?);
    let mut agent = first.agent("first", [])?;
    ensure!(agent.first_line()? == "ready first", "the agent runs");
    first.ok(["add-model", "test"])?;
    first.deploy("probe", ["app"])?;
    first.wait_for(["application", "app", "--status", "unknown"])?;
    Ok((site, first, agent))
}

#[test]
fn a_set_that_is_lost_with_its_log_begins_anew_from_a_backup() -> anyhow::Result<()> {
    let (mut site, first, _agent) = two_with_a_unit()?;
    fs::write(first.path().join("pass"), "correct horse 4711")?;
    // The second one has a backup made: each controller has all.
    let second = site.host(1)?;
    until("the model is at the second one", || Ok(models(second)? == ["test"]))?;
    fs::write(second.path().join("pass"), "correct horse 4711")?;
    second.ok(["create-backup", "--filename", "b.tar", "--passphrase-file", "pass"])?;
    fs::copy(second.path().join("b.tar"), first.path().join("b.tar"))?;
    let url =
        controller(&first)?.pointer("/details/url").and_then(Value::as_str).context("a URL")?.to_owned();
    let address = url.trim_start_matches("https://").trim_end_matches('/').to_owned();
    let log = site.etcd.url().to_string();
    let restore = |log: &str| {
        let to = ["bootstrap", "local", "--no-agent", "--listen", &address, "--member", "one", "--log", log];
        let from = ["--restore", "b.tar", "--passphrase-file", "pass"];
        to.into_iter().chain(from).map(str::to_owned).collect::<Vec<_>>()
    };

    // All is lost but the file. A log of controllers is not overwritten.
    for host in &site.hosts {
        host.ok(["kill-controller", "local", "--no-prompt"])?;
    }
    let refused = first.refused(restore(&log))?;
    ensure!(refused.contains("controllers have a log below") && refused.contains("etcdctl del"), "{refused}");
    ensure!(!first.path().join("data/controllers/local").exists(), "nothing is left of the attempt");

    let etcd = TestEtcd::start(3);
    etcd.ready();
    site.etcd = etcd;
    first.ok(restore(&site.etcd.url().to_string()))?;
    until("the agent is back", || has_agent(&first))?;
    first.ok(["switch", "local:test"])?;
    first.ok(["add-unit", "app"])?;
    first.wait_for(["unit", "app/1", "--status", "unknown"])?;

    // The old controllers are none of the new set; one joins, and has the state and the blobs.
    let shown = controller(&first)?;
    let members =
        shown.pointer("/details/controller-machines").and_then(Value::as_object).context("members")?;
    ensure!(members.keys().eq(["one"]), "{shown}");
    site.join_on(Installation::empty()?, "two")?;
    let joined = site.hosts.last().context("a host")?;
    until("the state is at the one that joined", || Ok(models(joined)? == ["test"]))?;
    until("the charm is at the one that joined", || Ok(archives(joined)? == 1))?;
    joined.ok(["add-model", "more"])?;
    until("the first one has it", || Ok(models(&first)? == ["more", "test"]))?;

    // The new set goes on without its first controller.
    first.ok(["controller", "stop", "local"])?;
    joined.ok(["add-model", "without"])?;
    first.ok(["controller", "start", "local"])?;
    until("the first one catches up", || Ok(models(&first)? == ["more", "test", "without"]))?;
    Ok(())
}

#[test]
fn a_set_whose_log_alone_is_lost_begins_anew_from_the_directory_of_a_controller() -> anyhow::Result<()> {
    let (mut site, first, _agent) = two_with_a_unit()?;
    let second = site.host(1)?;
    until("the charm is at the second one", || Ok(archives(second)? == 1))?;

    let etcd = TestEtcd::start(3);
    etcd.ready();
    let log = etcd.url().to_string();
    let place = "data/controllers/local/controller";
    let begin = |from: &str| {
        let to = ["bootstrap", "anew", "--no-agent", "--member", "one", "--log", &log, "--restore", from];
        to.map(str::to_owned)
    };
    let refused = second.refused(begin(place))?;
    ensure!(refused.contains("runs: end it first"), "{refused}");
    let refused = second.refused(begin("."))?;
    ensure!(refused.contains("is no directory of a periapt controller"), "{refused}");

    // The old log is gone with its servers.
    second.ok(["controller", "stop", "local"])?;
    first.ok(["controller", "stop", "local"])?;
    site.etcd = etcd;
    let second = site.host(1)?;
    let hidden = second.path().join("hidden");
    fs::rename(second.path().join(place).join("blobs"), &hidden)?;
    let refused = second.refused(begin(place))?;
    ensure!(refused.contains("take the directory of another controller of the set"), "{refused}");
    fs::remove_dir_all(second.path().join(place).join("blobs"))?;
    fs::rename(&hidden, second.path().join(place).join("blobs"))?;
    ensure!(!second.path().join("data/controllers/anew").exists(), "nothing is left of the attempts");

    second.ok(begin(place))?;
    second.ok(["switch", "anew:test"])?;
    second.ok(["add-unit", "app"])?;
    let status: Value = serde_json::from_str(&second.ok(["status", "--format", "json"])?)?;
    let units = status.pointer("/applications/app/units").and_then(Value::as_object).context("units")?;
    ensure!(units.len() == 2, "{status}");
    // The old directory is as it was: it makes another controller, alone this time.
    second.ok(["bootstrap", "alone", "--no-agent", "--restore", place])?;
    Ok(())
}
