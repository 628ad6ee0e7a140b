//! Three controllers of one log in three real etcd servers, each a process with data of its own: commands through any of
//! them, the death of the one that leads, and its return.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::{Installation, POLL_INTERVAL};
use serde_json::Value;

/// The timeout of waits.
const UNTIL: Duration = Duration::from_secs(90);

/// The controllers, each with the client on its host.
struct Site {
    etcd: TestEtcd,
    hosts: Vec<Installation>,
}

impl Site {
    /// Starts etcd, and the first controller.
    fn bootstrapped() -> anyhow::Result<Self> {
        let etcd = TestEtcd::start(3);
        etcd.ready();
        let first = Installation::empty()?;
        let log = etcd.url().to_string();
        first.ok(["bootstrap", "local", "--log", &log, "--member", "one", "--agent-name", "first"])?;
        Ok(Self { etcd, hosts: vec![first] })
    }

    /// Starts a further controller, with a token of the first one.
    fn join(&mut self, member: &str) -> anyhow::Result<()> {
        let (first, host) = (self.host(0)?, Installation::empty()?);
        let token = host.path().join("token");
        let token = token.to_str().context("a path")?;
        first.ok(["controller-token", member, "--output", token])?;
        let shown = controller(first)?;
        let url = shown.pointer("/details/url").and_then(Value::as_str).context("a URL")?;
        let join = ["controller", "join", "local", "--controller", url, "--token-file", token];
        host.ok(join.into_iter().chain(["--member", member]))?;
        let again = host.refused([
            "controller",
            "join",
            "other",
            "--controller",
            url,
            "--token-file",
            token,
            "--member",
            member,
        ])?;
        ensure!(again.contains("this token admits no controller of this name"), "{again}");
        self.hosts.push(host);
        Ok(())
    }

    fn host(&self, number: usize) -> anyhow::Result<&Installation> {
        self.hosts.get(number).context("a host")
    }

    /// Returns the number of the host whose controller leads, as this host knows it.
    fn leader(&self, asked: usize) -> anyhow::Result<Option<usize>> {
        let shown = controller(self.host(asked)?)?;
        let members = shown.pointer("/details/controller-machines").and_then(Value::as_object);
        let members = members.context("members")?;
        let leads = |name: &&str| {
            members.get(*name).is_some_and(|member| member.get("role").is_some_and(|role| role == "leader"))
        };
        Ok(["one", "two", "three"].iter().position(leads))
    }
}

/// Returns the details of a host's controller.
fn controller(host: &Installation) -> anyhow::Result<Value> {
    let shown: Value = serde_json::from_str(&host.ok(["show-controller", "--format", "json"])?)?;
    shown.get("local").cloned().context("the controller")
}

/// Returns the directory of a host's blobs.
fn blobs(host: &Installation) -> PathBuf {
    host.path().join("data/controllers/local/controller/blobs")
}

/// Returns the number of archives of charms on a host.
fn archives(host: &Installation) -> anyhow::Result<usize> {
    let mut count = 0;
    for directory in std::fs::read_dir(blobs(host)).into_iter().flatten() {
        let directory = directory?.path();
        // The names of finished blobs have no extension and no mark of an unfinished one.
        for file in std::fs::read_dir(directory).into_iter().flatten() {
            count += usize::from(file?.file_name().len() == 64);
        }
    }
    Ok(count)
}

fn models(host: &Installation) -> anyhow::Result<Vec<String>> {
    let shown: Value = serde_json::from_str(&host.ok(["models", "--format", "json"])?)?;
    let models = shown.get("models").and_then(Value::as_array).context("a list of models")?;
    let mut names: Vec<_> =
        models.iter().filter_map(|model| Some(model.get("short-name")?.as_str()?.to_owned())).collect();
    names.sort();
    Ok(names)
}

fn until(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = Instant::now();
    while !holds()? {
        ensure!(began.elapsed() < UNTIL, "{what} did not come to hold");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

#[test]
fn three_controllers_serve_one_state_and_go_on_when_the_leading_one_is_killed() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped()?;
    site.join("two")?;
    site.join("three")?;
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        site.host(number)?.ok(["add-model", name])?;
        ensure!(models(site.host(number)?)?.contains(&name.to_owned()), "{name} is seen by its sender");
    }
    for host in &site.hosts {
        until("the same models everywhere", || Ok(models(host)? == ["a", "b", "c"]))?;
    }
    until("all members are known", || Ok(site.leader(2)? == Some(0)))?;

    // The charm arrives at a follower, and comes to all; the agent's own controller is the one that is killed.
    let second = site.host(1)?;
    second.ok(["switch", "a"])?;
    second.deploy("mysql", [])?;
    second.wait_for(["model"])?;
    for host in &site.hosts {
        until("each has the charm's archive", || Ok(archives(host)? == 1))?;
    }

    let list: Value = serde_json::from_str(&site.host(0)?.ok(["controllers", "--format", "json"])?)?;
    let process =
        list.pointer("/controllers/local/controller-process").and_then(Value::as_u64).context("a process")?;
    let process = rustix::process::Pid::from_raw(i32::try_from(process)?).context("a process")?;
    rustix::process::kill_process(process, rustix::process::Signal::KILL)?;
    until("another controller leads", || Ok(matches!(site.leader(1)?, Some(1 | 2))))?;
    site.host(1)?.ok(["add-model", "d"])?;
    site.host(2)?.ok(["add-model", "e"])?;
    second.ok(["add-unit", "-m", "a", "mysql"])?;
    second.wait_for(["unit", "-m", "a", "mysql/1"])?;

    // It comes back without its blobs, and fetches them.
    std::fs::remove_dir_all(blobs(site.host(0)?))?;
    site.host(0)?.ok(["controller", "start", "local"])?;
    until("it has fetched the charm's archive", || Ok(archives(site.host(0)?)? == 1))?;
    until("it has come back", || Ok(models(site.host(0)?)? == ["a", "b", "c", "d", "e"]))?;
    site.host(0)?.ok(["add-model", "f"])?;
    until("it follows", || Ok(matches!(site.leader(0)?, Some(1 | 2))))?;
    drop(site.etcd);
    Ok(())
}

#[test]
fn a_log_that_cannot_be_used_is_refused_before_anything_is_made() -> anyhow::Result<()> {
    let host = Installation::empty()?;
    let error = host.refused(["bootstrap", "local", "--log", "etcd://127.0.0.1:1"])?;
    ensure!(error.contains("etcd cannot be reached: 127.0.0.1:1"), "{error}");
    let known: Value = serde_json::from_str(&host.ok(["controllers", "--format", "json"])?)?;
    ensure!(known.get("controllers").and_then(Value::as_object).is_none_or(|all| all.is_empty()), "{known}");
    Ok(())
}
