//! Rounds of faults under load. Clients of three hosts send commands all the time, while controllers and servers of etcd
//! are killed and paused in turn, the network loses what they send, or a clock is set an hour ahead or back. At the end
//! nothing that was acknowledged is lost, nothing happened twice, all controllers show the same, the log is whole, and the
//! history of names that clients competed for is linearizable. Two agents run hooks meanwhile and are killed and paused,
//! too: each hook is counted once, and no two units were told at one time that they lead.
//!
//! `PERIAPT_FAULT_ROUNDS` sets the number of rounds; `--no-capture` shows how long each fault kept all clients waiting.

use std::{collections::BTreeSet, env, sync::atomic::Ordering, thread};

use anyhow::{Context as _, ensure};
use periapt_host_api::{Revision, StoreId, Timestamp};
use periapt_log::{Entry, Log as _, LogError, LogHead};
use periapt_log_etcd::{EtcdLog, EtcdOptions};
use periapt_tests::{Installation, in_own_network};

use crate::{
    faults::{Fault, on_small_disk, round},
    hooks::{Hooks, check_leaders},
    site::{HOSTS, Site, controller, models, until},
    story::Story,
};

/// The number of rounds, unless the environment says another one.
const ROUNDS: usize = 20;

/// The number of rounds in which the network or a disk fails.
const CUT_ROUNDS: usize = 8;

/// An hour, in seconds.
const HOUR: i64 = 3_600;

/// The number of rounds in which the clock of a host is set.
const CLOCK_ROUNDS: usize = 6;

/// The clocks of the agents' hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentsClocks {
    /// They are this machine's.
    Kept,
    /// Faults set them, together with those of the controllers beside them.
    Set,
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
    let faults = [
        Fault::KillLeader,
        Fault::KillEtcd(0),
        Fault::PauseLeader,
        Fault::KillFollower,
        Fault::PauseEtcd(1),
        Fault::KillLeader,
        Fault::KillEtcd(2),
        Fault::KillAgent(0),
        Fault::PauseAgent(1),
    ];
    go_through(Site::of_three(&["--no-agent"])?, &faults, ROUNDS, AgentsClocks::Kept)
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_doubled_whatever_the_network_or_a_disk_does() -> anyhow::Result<()>
{
    let faults = [
        Fault::CutLeader,
        Fault::CutLeaderFromEtcd,
        Fault::MuteLeader,
        Fault::DeafenLeader,
        Fault::CutFollower,
        Fault::MuteFollower,
        Fault::FillLeader,
        Fault::FillFollower,
    ];
    let test = "rounds::nothing_that_was_acknowledged_is_lost_or_doubled_whatever_the_network_or_a_disk_does";
    in_own_network(test, &HOSTS, || {
        let site = Site::on_three_hosts()?;
        site.hosts.iter().try_for_each(|host| on_small_disk(host))?;
        go_through(site, &faults, CUT_ROUNDS, AgentsClocks::Kept)
    })
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_doubled_whatever_the_clocks_show() -> anyhow::Result<()> {
    let faults = [
        Fault::SetLeadersClock(HOUR),
        Fault::SetFollowersClock(HOUR),
        Fault::SetLeadersClock(-HOUR),
        Fault::SetFollowersClock(-HOUR),
        Fault::KillLeader,
        Fault::KillFollower,
    ];
    go_through(Site::with_clocks()?, &faults, CLOCK_ROUNDS, AgentsClocks::Set)
}

/// Goes through rounds of faults, and checks what is left.
#[expect(
    clippy::print_stdout,
    reason = "who runs many rounds reads how long each fault kept clients waiting"
)]
fn go_through(
    mut site: Site,
    faults: &[Fault],
    usual: usize,
    agents_clocks: AgentsClocks,
) -> anyhow::Result<()> {
    let rounds = env::var("PERIAPT_FAULT_ROUNDS").map_or(Ok(usual), |text| text.parse())?;
    until("all members are known", || Ok(site.leader(2)?.is_some()))?;
    let first = site.host(0)?;
    first.ok(["add-model", "load"])?;
    first.deploy("mysql", [])?;
    site.start_agents()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let hooks = runtime.block_on(Hooks::prepare(&site))?;
    // The clients keep their hosts while the rounds change the rest.
    let hosts = site.hosts.clone();
    let story = Story::default();
    let hooks = thread::scope(|scope| -> anyhow::Result<usize> {
        let storm = scope.spawn(|| runtime.block_on(hooks.run(&story)));
        let clients: Vec<_> = hosts
            .iter()
            .enumerate()
            .map(|(number, host)| {
                let story = &story;
                scope.spawn(move || story.send(number, host))
            })
            .collect();
        let worked = faults.iter().cycle().take(rounds).enumerate().try_for_each(|(number, fault)| {
            let gap = round(&mut site, &story, number / faults.len(), *fault)
                .with_context(|| format!("round {number}: {fault:?}"))?;
            println!("round {number}: {fault:?}, clients waited {} ms", gap.as_millis());
            anyhow::Ok(())
        });
        story.ended.store(true, Ordering::SeqCst);
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        let hooks = storm.join().map_err(|_| anyhow::anyhow!("the operator of the units panicked"))?;
        worked.and(hooks)
    })?;
    println!("{hooks} hooks, each counted once");
    ensure!(hooks > rounds, "the units had something to do");
    if agents_clocks == AgentsClocks::Kept {
        let leaders = runtime.block_on(check_leaders(&site))?;
        println!("{leaders} times a unit was told that it leads, and never two at one time");
        ensure!(leaders > 0, "a unit leads");
    }

    let contested = story.contested.check()?;
    println!("{contested} names were competed for");
    let (made, refused) = (story.made.into_inner(), story.refused.into_inner());
    let (added, unknown) = (story.units.into_inner(), story.unknown_units.into_inner());
    println!("{} models, {added} units acknowledged; of {unknown} units it is not known", made.len());
    let LogHead { position: end, at, .. } = end_of_log(&site)?;
    let ahead = at.as_second() - Timestamp::now().as_second();
    ensure!(ahead < 60, "the log is {ahead} s ahead of the time");
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
