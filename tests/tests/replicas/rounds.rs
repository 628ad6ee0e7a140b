//! Rounds of faults under load. Clients of three hosts send commands all the time, while controllers and servers of etcd
//! are killed and paused in turn. At the end nothing that was acknowledged is lost, nothing happened twice, all controllers
//! show the same, and the log is whole.
//!
//! `PERIAPT_FAULT_ROUNDS` sets the number of rounds; `--no-capture` shows how long each fault kept all clients waiting.

use std::{
    collections::BTreeSet,
    env,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use periapt_host_api::{Revision, StoreId};
use periapt_log::{Entry, Log as _, LogError, LogHead};
use periapt_log_etcd::{EtcdLog, EtcdOptions};
use periapt_tests::{Installation, signal};

use crate::site::{Site, controller, models, until};

/// The number of rounds, unless the environment says another one.
const ROUNDS: usize = 20;

/// The time for which a process is paused: longer than the lease of the controller that leads.
const PAUSED_FOR: Duration = Duration::from_secs(4);

/// The commands of the clients of all hosts, by their outcome.
#[derive(Default)]
struct Story {
    /// The models whose creation was acknowledged.
    made: Mutex<BTreeSet<String>>,
    /// The models whose creation was refused without effect.
    refused: Mutex<BTreeSet<String>>,
    /// The acknowledged units, and those of which the client did not learn.
    units: AtomicUsize,
    unknown_units: AtomicUsize,
    /// The acknowledged commands of each host.
    answers: [AtomicUsize; 3],
    ended: AtomicBool,
}

/// The outcome of a command, as its client was told.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    NothingHappened,
    Unknown,
}

impl Story {
    /// Sends commands through one host's controller, until the rounds are over.
    fn send(&self, number: usize, host: &Installation) -> anyhow::Result<()> {
        let answers = self.answers.get(number).context("a host")?;
        for count in 0.. {
            if self.ended.load(Ordering::SeqCst) {
                break;
            }
            let name = format!("m{number}-{count}");
            match outcome(host, &["add-model", &name, "--no-switch"])? {
                Outcome::Done => {
                    self.made.lock().insert(name);
                    answers.fetch_add(1, Ordering::SeqCst);
                }
                Outcome::NothingHappened => drop(self.refused.lock().insert(name)),
                Outcome::Unknown => {}
            }
            match outcome(host, &["add-unit", "-m", "load", "mysql"])? {
                Outcome::Done => {
                    self.units.fetch_add(1, Ordering::SeqCst);
                    answers.fetch_add(1, Ordering::SeqCst);
                }
                Outcome::NothingHappened => {}
                Outcome::Unknown => drop(self.unknown_units.fetch_add(1, Ordering::SeqCst)),
            }
        }
        Ok(())
    }

    fn answered(&self) -> usize {
        self.answers.iter().map(|answers| answers.load(Ordering::SeqCst)).sum()
    }

    /// Waits until the clients of all hosts have been answered again.
    fn all_are_answered(&self) -> anyhow::Result<()> {
        let before: Vec<_> = self.answers.iter().map(|answers| answers.load(Ordering::SeqCst)).collect();
        until("each host's clients are answered", || {
            Ok(self
                .answers
                .iter()
                .zip(&before)
                .all(|(answers, before)| answers.load(Ordering::SeqCst) > *before))
        })
    }
}

/// Runs a command, and tells what became of it.
fn outcome(host: &Installation, words: &[&str]) -> anyhow::Result<Outcome> {
    let done = host.run(words)?;
    let nothing = ["had no effect", "is it running?", "cannot be reached", "does not run"];
    Ok(match done.code {
        Some(0) => Outcome::Done,
        _ if done.stderr.contains("is not known") => Outcome::Unknown,
        _ if nothing.iter().any(|words| done.stderr.contains(words)) => Outcome::NothingHappened,
        code => anyhow::bail!("{words:?} ended with {code:?}: {}", done.stderr),
    })
}

/// A fault, and the number of its process.
#[derive(Debug, Clone, Copy)]
enum Fault {
    KillLeader,
    PauseLeader,
    KillFollower,
    KillEtcd(usize),
    PauseEtcd(usize),
}

/// Makes a fault, waits until clients are answered, and mends it. Returns the time for which no client was answered.
fn round(site: &mut Site, story: &Story, fault: Fault) -> anyhow::Result<Duration> {
    let leader = (0..3).find_map(|asked| site.leader(asked).ok().flatten()).context("a leader")?;
    let follower = (leader + 1) % 3;
    let process = |number: usize| site.host(number)?.controller_process("local");
    let (leading, following) = (process(leader)?, process(follower)?);
    let (began, answered) = (Instant::now(), story.answered());
    match fault {
        Fault::KillLeader => signal(leading, "KILL")?,
        Fault::KillFollower => signal(following, "KILL")?,
        Fault::PauseLeader => signal(leading, "STOP")?,
        Fault::KillEtcd(number) => site.etcd.kill(number),
        Fault::PauseEtcd(number) => site.etcd.pause(number),
    }
    // Answers that were on their way do not count.
    until("clients are answered", || Ok(story.answered() > answered + 3))?;
    let gap = began.elapsed();
    match fault {
        Fault::KillLeader => drop(site.host(leader)?.ok(["controller", "start", "local"])?),
        Fault::KillFollower => drop(site.host(follower)?.ok(["controller", "start", "local"])?),
        Fault::PauseLeader => {
            thread::sleep(PAUSED_FOR.saturating_sub(gap));
            signal(leading, "CONT")?;
        }
        Fault::KillEtcd(number) => site.etcd.start_server(number),
        Fault::PauseEtcd(number) => {
            thread::sleep(PAUSED_FOR.saturating_sub(gap));
            site.etcd.resume(number);
        }
    }
    story.all_are_answered()?;
    Ok(gap)
}

/// Reads the whole log, each entry of which follows the one before, in a term that is never lower. Returns its end.
fn end_of_log(site: &Site) -> anyhow::Result<LogHead> {
    let options = EtcdOptions { url: site.etcd.url(), tls: None, fresh_id: StoreId(uuid::Uuid::nil()) };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let log = EtcdLog::open(&options).await?;
        let mut head = LogHead::empty(log.id());
        loop {
            let entries = match log.read(head.position, 4 << 20).await {
                // A controller that leads for long enough trims what is on two disks.
                Err(LogError::Trimmed(trimmed)) => {
                    head = head_at(&log, trimmed).await?;
                    continue;
                }
                entries => entries?,
            };
            if entries.is_empty() {
                return Ok(head);
            }
            for stored in entries {
                let entry = Entry::decode(stored.position, &stored.bytes)?;
                head = head.after(stored.position, &entry, &stored.bytes)?;
            }
        }
    })
}

/// Returns the end of the part of a log that was trimmed, as the entry after it names it.
async fn head_at(log: &EtcdLog, trimmed: Revision) -> anyhow::Result<LogHead> {
    let next =
        log.read(trimmed, 1).await?.into_iter().next().context("an entry after those that were trimmed")?;
    let Entry { term, at, level, previous: digest, .. } = Entry::decode(next.position, &next.bytes)?;
    Ok(LogHead { log: log.id(), position: trimmed, term, at, level, digest })
}

/// Returns the number of units of the loaded application.
fn units(host: &Installation) -> anyhow::Result<usize> {
    let status = host.json(["status", "-m", "load"])?;
    let units = status.pointer("/applications/mysql/units").and_then(serde_json::Value::as_object);
    Ok(units.context("units")?.len())
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_doubled_whatever_is_killed_or_paused() -> anyhow::Result<()> {
    let rounds = env::var("PERIAPT_FAULT_ROUNDS").map_or(Ok(ROUNDS), |text| text.parse())?;
    let mut site = Site::of_three(&["--no-agent"])?;
    until("all members are known", || Ok(site.leader(2)? == Some(0)))?;
    let first = site.host(0)?;
    first.ok(["add-model", "load"])?;
    first.deploy("mysql", [])?;
    // The clients keep their hosts while the rounds change the rest.
    let hosts = site.hosts.clone();
    let story = Story::default();
    thread::scope(|scope| -> anyhow::Result<()> {
        let clients: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(number, host)| {
                let story = &story;
                scope.spawn(move || story.send(number, host))
            })
            .collect();
        let faults = [
            Fault::KillLeader,
            Fault::KillEtcd(0),
            Fault::PauseLeader,
            Fault::KillFollower,
            Fault::PauseEtcd(1),
            Fault::KillLeader,
            Fault::KillEtcd(2),
        ];
        let worked = faults.into_iter().cycle().take(rounds).enumerate().try_for_each(|(number, fault)| {
            let gap =
                round(&mut site, &story, fault).with_context(|| format!("round {number}: {fault:?}"))?;
            println!("round {number}: {fault:?}, clients waited {} ms", gap.as_millis());
            anyhow::Ok(())
        });
        story.ended.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        worked
    })?;

    let (made, refused) = (story.made.into_inner(), story.refused.into_inner());
    let (added, unknown) = (story.units.into_inner(), story.unknown_units.into_inner());
    println!("{} models, {added} units acknowledged; of {unknown} units it is not known", made.len());
    let end = end_of_log(&site)?.position;
    for host in &site.hosts {
        until("each controller has applied the log", || {
            let shown = controller(host)?;
            let members =
                shown.pointer("/details/controller-machines").and_then(|all| all.as_object().cloned());
            let reached = |member: &serde_json::Value| {
                member.get("revision").and_then(serde_json::Value::as_u64).is_some_and(|at| at >= end.0)
            };
            Ok(members.context("members")?.values().all(reached))
        })?;
        let shown: BTreeSet<String> = models(host)?.into_iter().collect();
        let lost: Vec<_> = made.difference(&shown).collect();
        ensure!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        let unexpected: Vec<_> = refused.intersection(&shown).collect();
        ensure!(unexpected.is_empty(), "said to have had no effect: {unexpected:?}");
        let units = units(host)?;
        // One was deployed.
        ensure!((added + 1..=added + 1 + unknown).contains(&units), "{units} units, {added} added");
    }
    ensure!(made.len() > rounds, "the clients had something to do");
    Ok(())
}
