//! Bootstraps with a log that are undone: they remove what they wrote into etcd and can be repeated at once. They leave a log
//! into which another controller has written.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::{Installation, signal};

use crate::{
    log::{append_foreign_term, end_of_log, is_absent},
    site::{UNTIL, models, until},
};

/// The pause between two looks at a bootstrap's directory: a bootstrap is held up before its controller answers.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A bootstrap that runs.
struct Bootstrap {
    process: Child,
    /// The directory of its controller.
    directory: PathBuf,
    /// The file of what it says.
    told: PathBuf,
}

impl Drop for Bootstrap {
    fn drop(&mut self) {
        // One that a failed test has stopped would stay for ever.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Bootstrap {
    /// Begins to bootstrap a controller with a log and an agent.
    fn begin(host: &Installation, log: &str) -> anyhow::Result<Self> {
        let told = host.path().join("told.log");
        let mut command = host.command(words(log));
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&told)?).spawn()?;
        Ok(Self { process, directory: host.path().join("data/controllers/local"), told })
    }

    /// Waits until it has come so far.
    fn reaches(&mut self, stage: &str, holds: impl Fn(&Path) -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        while !holds(&self.directory) {
            ensure!(self.process.try_wait()?.is_none(), "it ended before {stage}: {}", self.said()?);
            ensure!(began.elapsed() < UNTIL, "{stage} did not come");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Holds it up once it has started its controller, and waits until that leads. Returns the controller's process.
    fn hold(&mut self, etcd: &TestEtcd) -> anyhow::Result<u32> {
        let mark = |directory: &Path| fs::read_to_string(directory.join("starting.json")).unwrap_or_default();
        self.reaches("its controller", |directory| mark(directory).ends_with('\n'))?;
        signal(self.process.id(), "STOP")?;
        until("its controller leads", || {
            Ok(!is_absent(etcd, "periapt")? && end_of_log(etcd)?.position.0 > 0)
        })?;
        let text = mark(self.directory.as_path());
        let mark: serde_json::Value = serde_json::from_str(text.lines().next().context("a process")?)?;
        let pid = mark.get("pid").and_then(serde_json::Value::as_u64).context("a process")?;
        Ok(u32::try_from(pid)?)
    }

    /// Waits until it has ended with this code, and has left neither a directory nor a process. Returns what it said.
    fn undone(mut self, host: &Installation, code: i32) -> anyhow::Result<String> {
        let ended = self.process.wait()?.code();
        let said = self.said()?;
        ensure!(ended == Some(code), "{ended:?}: {said}");
        ensure!(!self.directory.exists(), "its directory is left: {said}");
        until("its processes have ended", || Ok(host.processes()?.is_empty()))?;
        Ok(said)
    }

    fn said(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(&self.told)?)
    }
}

/// Returns the words of a bootstrap with a log.
fn words(log: &str) -> [&str; 8] {
    ["bootstrap", "local", "--agent-name", "first", "--member", "one", "--log", log]
}

#[test]
fn a_bootstrap_that_fails_after_it_has_begun_its_log_is_repeated_at_once() -> anyhow::Result<()> {
    let etcd = TestEtcd::start(1);
    etcd.ready();
    let (host, log) = (Installation::empty()?, etcd.url().to_string());
    let mut bootstrap = Bootstrap::begin(&host, &log)?;
    // The agent cannot make its directory, as a file has its name. By then the controller leads.
    bootstrap.reaches("its directory", |directory| directory.join("starting.json").exists())?;
    fs::write(bootstrap.directory.join("agent"), "")?;
    let said = bootstrap.undone(&host, 1)?;
    ensure!(said.contains("the agent did not start") && !said.contains("and then"), "{said}");
    ensure!(is_absent(&etcd, "periapt")?, "its log is left");
    host.ok(words(&log))?;
    host.ok(["add-model", "a"])?;
    ensure!(models(&host)? == ["a"]);
    Ok(())
}

#[test]
fn a_bootstrap_that_is_interrupted_while_its_controller_leads_is_repeated_at_once() -> anyhow::Result<()> {
    let etcd = TestEtcd::start(1);
    etcd.ready();
    let (host, log) = (Installation::empty()?, etcd.url().to_string());
    let mut bootstrap = Bootstrap::begin(&host, &log)?;
    bootstrap.hold(&etcd)?;
    signal(bootstrap.process.id(), "INT")?;
    signal(bootstrap.process.id(), "CONT")?;
    let said = bootstrap.undone(&host, 130)?;
    ensure!(said.contains("bootstrap was interrupted, and undone") && !said.contains("and then"), "{said}");
    ensure!(is_absent(&etcd, "periapt")?, "its log is left");
    host.ok(words(&log))?;
    host.ok(["add-model", "a"])?;
    ensure!(models(&host)? == ["a"]);
    Ok(())
}

#[test]
fn a_bootstrap_that_is_undone_leaves_a_log_into_which_another_controller_has_written() -> anyhow::Result<()> {
    let etcd = TestEtcd::start(1);
    etcd.ready();
    let (host, log) = (Installation::empty()?, etcd.url().to_string());
    let mut bootstrap = Bootstrap::begin(&host, &log)?;
    let controller = bootstrap.hold(&etcd)?;
    // Another controller leads while that of the bootstrap is frozen, as if one with the same place had begun at once.
    signal(controller, "STOP")?;
    append_foreign_term(&etcd)?;
    let end = end_of_log(&etcd)?;
    signal(controller, "CONT")?;
    signal(bootstrap.process.id(), "INT")?;
    signal(bootstrap.process.id(), "CONT")?;
    let said = bootstrap.undone(&host, 130)?;
    let left = "and then: the log below \"periapt/\" stays in etcd: controller \"foreign\" has led it";
    ensure!(said.contains(left), "{said}");
    ensure!(end_of_log(&etcd)? == end, "the log stays as it is");
    let refused = host.refused(words(&log))?;
    ensure!(refused.contains("controllers have a log below \"periapt/\" already"), "{refused}");
    Ok(())
}

#[test]
fn a_bootstrap_that_is_undone_while_etcd_is_away_says_that_its_log_stays() -> anyhow::Result<()> {
    let mut etcd = TestEtcd::start(1);
    etcd.ready();
    let (host, log) = (Installation::empty()?, etcd.url().to_string());
    let mut bootstrap = Bootstrap::begin(&host, &log)?;
    bootstrap.hold(&etcd)?;
    etcd.kill(0);
    signal(bootstrap.process.id(), "INT")?;
    signal(bootstrap.process.id(), "CONT")?;
    let said = bootstrap.undone(&host, 130)?;
    for part in [
        "and then: its log may be left in etcd: etcd cannot be reached: ",
        "'etcdctl del periapt/id' and 'etcdctl del --prefix periapt/00/' delete it",
    ] {
        ensure!(said.contains(part), "{part:?} is not in: {said}");
    }
    etcd.start_server(0);
    etcd.ready();
    ensure!(!is_absent(&etcd, "periapt")?, "the error is right");
    Ok(())
}
