//! Rounds of faults under load. Clients of three hosts send commands all the time, while controllers and servers of etcd
//! are killed and paused in turn, the network loses what they send, etcd's leading server is cut off, a disk is full, etcd
//! raises its alarm that it has no room, a clock is set an hour off, or all controllers are restarted or upgraded in order.
//! At the end nothing that was acknowledged is lost, nothing happened twice, all controllers show the same, and the history
//! of names that clients competed for is linearizable. The log is read all the while, and folded: it is whole, has each
//! acknowledged request once, in the order in which they were sent, each answer to a read is a state of it, and the store
//! of each controller is the fold of it at the store's position. Two agents run hooks meanwhile and are killed and paused,
//! too: each hook is counted once, and no two units were told at one time that they lead. An operator uploads content
//! meanwhile: each controller gives in the end what was acknowledged last.
//!
//! `PERIAPT_FAULT_ROUNDS` sets the number of rounds, and `PERIAPT_FAULT_SEED` with which fault they begin and how long
//! faults last. `--no-capture` shows how long each fault kept all clients waiting. `tools/rounds` runs many in parallel.

use std::{
    collections::BTreeSet,
    env,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, ScopedJoinHandle},
};

use anyhow::{Context as _, ensure};
use periapt_host_api::Timestamp;
use periapt_log::LogHead;
use periapt_tests::{Installation, in_own_network};

use crate::{
    callers::{Caller, History, REGISTER},
    disks::{ETCD_ON_SMALL_DISK, disks_of_etcd, on_small_disk},
    faults::{EtcdCut, EtcdRole, Fault, round},
    hooks::{Hooks, Leaderships, leaderships},
    lengths::Lengths,
    site::{NETWORK, Site, controller, models, until},
    stores::check_stores,
    story::{LOADED, Story},
    uploads::Uploads,
    witness::Witness,
};

/// The number of rounds, unless the environment says another one. The upgrade of all takes minutes beside other tests, and
/// `upgrading.rs` and `mixed.rs` upgrade controllers under load: it comes in longer runs.
const ROUNDS: usize = 12;

/// The number of rounds in which the network or a disk fails.
const CUT_ROUNDS: usize = 14;

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

/// Returns the number of units of the loaded application.
fn units(host: &Installation) -> anyhow::Result<usize> {
    let status = host.json(["status", "-m", "load"])?;
    let units =
        status.pointer(&format!("/applications/{LOADED}/units")).and_then(serde_json::Value::as_object);
    Ok(units.context("units")?.len())
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_doubled_whatever_is_killed_or_paused() -> anyhow::Result<()> {
    let faults = [
        Fault::KillLeader,
        Fault::KillEtcd(EtcdRole::Leader),
        Fault::PauseLeader,
        Fault::KillFollower,
        Fault::PauseEtcd(EtcdRole::Leader),
        Fault::KillLeader,
        Fault::KillEtcd(EtcdRole::Follower),
        Fault::KillAgent(0),
        Fault::PauseAgent(1),
        Fault::AlarmEtcd,
        Fault::PauseFollower,
        Fault::RestartAll,
        Fault::Upgrade,
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
        Fault::FillRunningLeader,
        Fault::FillEtcd(EtcdRole::Leader),
        Fault::FillEtcd(EtcdRole::Follower),
        Fault::CutControllers,
        Fault::CutEtcdLeader(EtcdCut::FromServers),
        Fault::CutEtcdLeader(EtcdCut::FromAll),
        // Only in longer runs.
        Fault::FillRunningFollower,
    ];
    let test = "rounds::nothing_that_was_acknowledged_is_lost_or_doubled_whatever_the_network_or_a_disk_does";
    in_own_network(test, &NETWORK, || {
        let site = Site::on_hosts_of_network(disks_of_etcd()?, &ETCD_ON_SMALL_DISK)?;
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

/// Sets a flag when it is dropped, also by a panic: the threads of a scope, which waits for them, end then.
pub(crate) struct SetAtEnd<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for a thread's end, and returns its result.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, anyhow::Result<T>>, who: &str) -> anyhow::Result<T> {
    thread.join().map_err(|_| anyhow::anyhow!("{who} panicked"))?
}

/// Makes the models that clients use, starts agents, and returns the operators of the units and of the uploads.
async fn prepared(site: &mut Site) -> anyhow::Result<(Hooks, Uploads)> {
    until("all members are known", || Ok(site.leader(2)?.is_some()))?;
    let first = site.host(0)?;
    first.ok(["add-model", REGISTER])?;
    first.ok(["add-model", "load"])?;
    first.deploy(LOADED, [])?;
    for host in &site.hosts {
        until("each has the models", || Ok(models(host)? == ["load", REGISTER]))?;
    }
    site.start_agents()?;
    Ok((Hooks::prepare(site).await?, Uploads::prepare(site).await?))
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
    let mut lengths = Lengths::of(rounds, usual)?;
    let first = lengths.first_fault(faults.len())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (hooks, uploads) = runtime.block_on(prepared(&mut site))?;
    // The clients keep their hosts while the rounds change the rest.
    let (hosts, log) = (site.hosts.clone(), site.etcd.url());
    let sockets: Vec<PathBuf> = hosts.iter().map(|host| host.socket("local")).collect();
    let (story, history, is_over) = (Story::default(), History::default(), AtomicBool::new(false));
    let pause = lengths.pause();
    let callers = (0..hosts.len()).map(|number| Caller::new(number, &sockets, &history));
    let callers = callers.collect::<anyhow::Result<Vec<_>>>()?;
    let (hooks, shelf, mut witness) = thread::scope(|scope| -> anyhow::Result<(usize, Uploads, Witness)> {
        let _ends = (SetAtEnd(&story.ended), SetAtEnd(&is_over));
        let witness = scope.spawn(|| Witness::follow(log, &is_over));
        let storm = scope.spawn(|| runtime.block_on(hooks.run(&story, pause)));
        let uploading = scope.spawn(|| runtime.block_on(uploads.run(&story)));
        let story = &story;
        let clients = hosts.iter().enumerate();
        let clients: Vec<_> =
            clients.map(|(number, host)| scope.spawn(move || story.send(number, host, pause))).collect();
        let callers: Vec<_> =
            callers.into_iter().map(|caller| scope.spawn(move || caller.run(&story.ended))).collect();
        let faults = faults.iter().copied().cycle().skip(first).take(rounds);
        let worked = faults.enumerate().try_for_each(|(number, fault)| {
            let gap = round(&mut site, story, &mut lengths, fault).with_context(|| {
                let logs: String = hosts.iter().map(|host| host.logs()).collect();
                format!("round {number}: {fault:?}\n{logs}")
            })?;
            println!("round {number}: {fault:?}, clients waited {} ms", gap.as_millis());
            anyhow::Ok(())
        });
        // Nothing returns before the witness, which ends last, is told.
        story.ended.store(true, Ordering::SeqCst);
        let sent: Vec<_> = clients.into_iter().map(|client| joined(client, "a client")).collect();
        let called: Vec<_> = callers.into_iter().map(|caller| joined(caller, "a caller")).collect();
        let hooks = joined(storm, "the operator of the units");
        let uploads = joined(uploading, "the operator of the uploads");
        is_over.store(true, Ordering::SeqCst);
        let witness = joined(witness, "the reader of the log");
        worked?;
        sent.into_iter().chain(called).collect::<anyhow::Result<()>>()?;
        Ok((hooks?, uploads?, witness?))
    })?;
    println!("{hooks} hooks, each counted once");
    ensure!(hooks > rounds, "the units had something to do");
    // `tools/rounds` reads what is printed.
    match agents_clocks {
        AgentsClocks::Kept => {
            let Leaderships { told, overlapping } = runtime.block_on(leaderships(&site))?;
            println!("units were told {told} times that they lead: overlapping {}", overlapping.len());
            ensure!(overlapping.is_empty(), "H6: two units lead: {:?}", overlapping.first());
            ensure!(told > 0, "a unit leads");
        }
        AgentsClocks::Set => {
            println!("units were told that they lead by clocks that were set: overlapping not judged");
        }
    }

    let (writes, reads) = witness.check(&history.calls())?;
    println!("{writes} writes are in the log once and in their order, {reads} reads are states of it");
    ensure!(writes > rounds && reads > rounds, "the callers had something to do");
    let contested = story.contested.check()?;
    println!("{contested} names were competed for");
    let all: BTreeSet<String> = witness.models().cloned().collect();
    check_end(&site, story, &all, rounds, &witness.head)?;
    let contents = runtime.block_on(shelf.check(&site))?;
    println!("{contents} contents were acknowledged, and each controller has the newest");
    check_stores(&site, &mut witness)?;
    let Witness { head, entities, audit, .. } = &witness;
    let (entities, records) = (entities.len(), audit.len());
    let to = head.position;
    println!("each store is the fold of the log up to {to}: {entities} entities, {records} audit records");
    Ok(())
}

/// Checks what the controllers show at the end, when the log has these models.
#[expect(clippy::print_stdout, reason = "who runs many rounds reads what clients did")]
fn check_end(
    site: &Site,
    story: Story,
    all: &BTreeSet<String>,
    rounds: usize,
    head: &LogHead,
) -> anyhow::Result<()> {
    let (made, refused) = (story.made.into_inner(), story.refused.into_inner());
    let (added, unknown) = (story.units.into_inner(), story.unknown_units.into_inner());
    println!("{} models, {added} units acknowledged; of {unknown} units it is not known", made.len());
    let ahead = head.at.as_second() - Timestamp::now().as_second();
    ensure!(ahead < 60, "the log is {ahead} s ahead of the time");
    for host in &site.hosts {
        until("each controller has applied the log", || {
            let shown = controller(host)?;
            let members =
                shown.pointer("/details/controller-machines").and_then(|all| all.as_object().cloned());
            let reached = |member: &serde_json::Value| {
                member
                    .get("revision")
                    .and_then(serde_json::Value::as_u64)
                    .is_some_and(|at| at >= head.position.0)
            };
            Ok(members.context("members")?.values().all(reached))
        })?;
        let shown: BTreeSet<String> = models(host)?.into_iter().collect();
        let lost: Vec<_> = made.difference(&shown).collect();
        // One unit was deployed.
        let (units, least, most) = (units(host)?, added + 1, added + 1 + unknown);
        let (missing, doubled) = (least.saturating_sub(units), units.saturating_sub(most));
        // `tools/rounds` reads it.
        println!("a controller shows: lost {}, doubled {doubled}", lost.len() + missing);
        ensure!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        let unexpected: Vec<_> = refused.intersection(&shown).collect();
        ensure!(unexpected.is_empty(), "said to have had no effect: {unexpected:?}");
        let hidden: Vec<_> = all.difference(&shown).collect();
        ensure!(hidden.is_empty(), "in the log, and not shown: {hidden:?}");
        ensure!((least..=most).contains(&units), "{units} units, {added} added");
    }
    ensure!(made.len() > rounds, "the clients had something to do");
    Ok(())
}
