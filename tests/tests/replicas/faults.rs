//! The faults of the rounds, and how each is mended.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use periapt_log_etcd::testing::TestEtcd;
use periapt_tests::{Installation, Link, set_link, set_path, signal};

use crate::{
    disks::{fill, fill_etcd, fill_under, filler, free_etcd},
    lengths::Lengths,
    log::{disarm_alarms, raise_alarms, take_room},
    rolling::{restart_all, upgrade},
    site::{HOSTS, NETWORK, Site, etcd_hosts, until},
    stale::is_stale,
    story::Story,
};

/// The error of a write to a full disk.
const NO_SPACE: &str = "No space left on device";

/// The pause of a supervisor before it starts a server of etcd again that has ended.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// The longest time for which etcd carries nothing out: requests are sent again for a minute.
const ALARM_AT_MOST: Duration = Duration::from_secs(30);

/// The longest time for which controllers do not reach each other: the operator of the units sends a request to one of them
/// for a minute and a half, and it may be one that cannot pass it on.
const APART_AT_MOST: Duration = Duration::from_secs(30);

/// A fault, and the number of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillLeader,
    PauseLeader,
    KillFollower,
    PauseFollower,
    /// The controllers are stopped and started one after the other, the leading one last.
    RestartAll,
    /// The controllers and the agents replace their program one after the other, as `upgrade-controller` has them do.
    Upgrade,
    KillEtcd(EtcdRole),
    PauseEtcd(EtcdRole),
    /// The disk of a server of etcd becomes full while it runs. The server ends, and its supervisor starts it again and
    /// again.
    FillEtcd(EtcdRole),
    /// All servers of etcd raise the alarm that they have no room: nothing is carried out until an operator disarms it.
    AlarmEtcd,
    /// The keeper of an agent is killed, and with it the runners that it has started.
    KillAgent(usize),
    /// The keeper of an agent is paused, and its runners go on.
    PauseAgent(usize),
    /// The leading controller's host is cut off from all others.
    CutLeader,
    /// The leading controller is cut off from etcd, and reaches the other controllers.
    CutLeaderFromEtcd,
    /// Nothing that the leading controller sends reaches etcd, and what etcd sends arrives.
    MuteLeader,
    /// Nothing that etcd sends reaches the leading controller, and what it sends arrives.
    DeafenLeader,
    /// A follower's host is cut off from all others.
    CutFollower,
    /// No controller reaches another one. All reach etcd, and clients reach all.
    CutControllers,
    /// Nothing that a follower sends reaches etcd.
    MuteFollower,
    /// The server of etcd that leads is cut off from the other two. They elect another one.
    CutEtcdLeader(EtcdCut),
    /// The leading controller is killed, and its disk is full when it starts again.
    FillLeader,
    /// The same happens to a follower.
    FillFollower,
    /// The disk of the leading controller becomes full while it runs.
    FillRunningLeader,
    /// The same happens to a follower.
    FillRunningFollower,
    /// The wall clock of the leading controller's host is set so many seconds ahead.
    SetLeadersClock(i64),
    /// The same happens to a follower's host.
    SetFollowersClock(i64),
}

/// The hosts that a server of etcd does not reach, and that do not reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EtcdCut {
    /// The other servers. Each controller goes on to one that knows who leads.
    FromServers,
    /// The other servers and all controllers.
    FromAll,
}

/// The role of a server of etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EtcdRole {
    Leader,
    Follower,
}

impl EtcdRole {
    /// Returns the number of a server that has this role now.
    fn server(self, etcd: &TestEtcd) -> anyhow::Result<usize> {
        let mut leader = None;
        until("a server of etcd leads", || {
            leader = etcd.leader();
            Ok(leader.is_some())
        })?;
        let leader = leader.context("the leader of etcd")?;
        Ok(match self {
            Self::Leader => leader,
            Self::Follower => (leader + 1) % 3,
        })
    }
}

/// The process that a fault concerns.
#[derive(Debug, Clone, Copy)]
struct Met {
    /// The number of the controller's host, or of the server of etcd.
    number: usize,
    /// The process of the controller.
    process: u32,
    /// The length of what the controller has logged before.
    logged: usize,
}

impl Met {
    fn of(site: &Site, fault: Fault) -> anyhow::Result<Self> {
        let leader = site.known_leader()?;
        let number = match fault {
            Fault::KillEtcd(role) | Fault::PauseEtcd(role) | Fault::FillEtcd(role) => {
                role.server(&site.etcd)?
            }
            Fault::CutEtcdLeader(_) => EtcdRole::Leader.server(&site.etcd)?,
            Fault::KillFollower
            | Fault::PauseFollower
            | Fault::CutFollower
            | Fault::MuteFollower
            | Fault::FillFollower
            | Fault::FillRunningFollower
            | Fault::SetFollowersClock(_) => (leader + 1) % 3,
            _ => leader,
        };
        let host = site.host(number)?;
        Ok(Self { number, process: host.controller_process("local")?, logged: controller_log(host)?.len() })
    }

    /// Returns true if the controller has logged a text since the fault began.
    fn has_logged(&self, site: &Site, text: &str) -> anyhow::Result<bool> {
        has_logged_since(site.host(self.number)?, self.logged, text)
    }
}

/// Makes a fault, waits until clients are answered, and mends it. Returns the time for which no client was answered.
pub(crate) fn round(
    site: &mut Site,
    story: &Story,
    lengths: &mut Lengths,
    fault: Fault,
) -> anyhow::Result<Duration> {
    let met = Met::of(site, fault)?;
    match fault {
        Fault::AlarmEtcd => return under_alarm(site, story, lengths, met),
        Fault::RestartAll => return restart_all(site, story),
        Fault::Upgrade => return upgrade(site, story),
        _ => {}
    }
    let mut began = Instant::now();
    set(site, fault, met, Link::Down)?;
    // What was answered while the fault was being made does not count.
    let mut answered = story.answered();
    if let Fault::FillEtcd(_) = fault {
        // Clients are answered until the server needs more room than it has.
        ends_without_room(&mut site.etcd, met.number)?;
        (began, answered) = (Instant::now(), story.answered());
    }
    // Answers that were on their way do not count.
    until("clients are answered", || Ok(story.answered() > answered + 3))?;
    let gap = began.elapsed();
    check(site, fault, met)?;
    if let Fault::CutEtcdLeader(_) = fault {
        // Each controller has gone on to a server of etcd that knows who leads.
        story.all_are_answered()?;
    }
    match fault {
        Fault::KillLeader | Fault::KillFollower | Fault::KillEtcd(_) | Fault::KillAgent(_) => {}
        Fault::FillEtcd(_) => supervise(&mut site.etcd, met.number, began + lengths.take()),
        Fault::CutControllers => {
            thread::sleep(lengths.take().min(APART_AT_MOST).saturating_sub(began.elapsed()));
        }
        _ => thread::sleep(lengths.take().saturating_sub(began.elapsed())),
    }
    set(site, fault, met, Link::Up)?;
    story.all_are_answered()?;
    Ok(gap)
}

/// Raises etcd's alarm for a while, in which nothing is carried out. Returns the time for which no client was answered after
/// an operator had disarmed it.
fn under_alarm(site: &mut Site, story: &Story, lengths: &mut Lengths, met: Met) -> anyhow::Result<Duration> {
    let logged = site.hosts.iter().map(|host| Ok(controller_log(host)?.len()));
    let logged = logged.collect::<anyhow::Result<Vec<_>>>()?;
    set(site, Fault::AlarmEtcd, met, Link::Down)?;
    until("a controller tells the alarm", || {
        for (host, logged) in site.hosts.iter().zip(&logged) {
            if has_logged_since(host, *logged, "NOSPACE")? {
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    let answered = story.answered();
    thread::sleep(lengths.take().min(ALARM_AT_MOST));
    // One answer of each host may have been on its way.
    let carried_out = story.answered() - answered;
    ensure!(carried_out <= HOSTS.len(), "{carried_out} commands were carried out in an etcd that is full");
    let (mended, answered) = (Instant::now(), story.answered());
    set(site, Fault::AlarmEtcd, met, Link::Up)?;
    until("clients are answered", || Ok(story.answered() > answered + 3))?;
    let gap = mended.elapsed();
    story.all_are_answered()?;
    Ok(gap)
}

/// Waits until a server of etcd whose disk is full has ended. Values fill the pages of its database that were free.
fn ends_without_room(etcd: &mut TestEtcd, number: usize) -> anyhow::Result<()> {
    until("etcd ends on a full disk", || {
        take_room(etcd, (number + 1) % 3)?;
        Ok(etcd.has_ended(number))
    })
}

/// Starts a server of etcd again whenever it has ended, until some moment.
fn supervise(etcd: &mut TestEtcd, number: usize, end: Instant) {
    while Instant::now() < end {
        if etcd.has_ended(number) {
            etcd.start_server(number);
        }
        thread::sleep(RESTART_AFTER.min(end.saturating_duration_since(Instant::now())));
    }
}

/// Checks what others do, and what the controller tells, while a fault lasts.
fn check(site: &Site, fault: Fault, met: Met) -> anyhow::Result<()> {
    match fault {
        Fault::KillEtcd(EtcdRole::Leader)
        | Fault::PauseEtcd(EtcdRole::Leader)
        | Fault::FillEtcd(EtcdRole::Leader)
        | Fault::CutEtcdLeader(_) => until("another server of etcd leads", || {
            Ok(site.etcd.leader().is_some_and(|leader| leader != met.number))
        }),
        Fault::FillRunningLeader | Fault::FillRunningFollower => {
            until("a full disk is told", || met.has_logged(site, NO_SPACE))?;
            until("a controller that cannot write shows nothing", || is_stale(site.host(met.number)?))?;
            site.another_leads(met.number)
        }
        Fault::CutControllers => {
            until("the leading controller hears nothing of the others", || site.leader_is_alone())
        }
        _ => Ok(()),
    }
}

/// Makes a fault of a host's controller, or mends it.
fn set(site: &mut Site, fault: Fault, met: Met, link: Link) -> anyhow::Result<()> {
    let Met { number, process, .. } = met;
    let host = *HOSTS.get(number).context("a host")?;
    let to_etcd = || etcd_hosts().try_for_each(|(_, server)| set_path(host, server, link));
    let from_etcd = || etcd_hosts().try_for_each(|(server, _)| set_path(server, number + 1, link));
    let is_made = link == Link::Down;
    match fault {
        Fault::KillLeader | Fault::KillFollower if is_made => signal(process, "KILL")?,
        Fault::KillLeader | Fault::KillFollower => {
            site.host(number)?.ok(["controller", "start", "local"])?;
        }
        Fault::PauseLeader | Fault::PauseFollower => signal(process, if is_made { "STOP" } else { "CONT" })?,
        Fault::KillEtcd(_) if is_made => site.etcd.kill(number),
        Fault::KillEtcd(_) => site.etcd.start_server(number),
        Fault::PauseEtcd(_) if is_made => site.etcd.pause(number),
        Fault::PauseEtcd(_) => site.etcd.resume(number),
        Fault::FillEtcd(_) if is_made => fill_etcd(&site.etcd, number)?,
        Fault::FillEtcd(_) => {
            free_etcd(&site.etcd, number)?;
            until("etcd goes on once its disk has room", || {
                if site.etcd.has_ended(number) {
                    site.etcd.start_server(number);
                }
                Ok(site.etcd.knows_leader(number))
            })?;
        }
        Fault::AlarmEtcd if is_made => raise_alarms(&site.etcd)?,
        Fault::AlarmEtcd => disarm_alarms(&site.etcd)?,
        Fault::KillAgent(number) | Fault::PauseAgent(number) => {
            let agent = site.agents.get_mut(number).context("an agent")?;
            match (fault, is_made) {
                (Fault::KillAgent(_), true) => agent.signal("KILL")?,
                (Fault::KillAgent(_), false) => agent.start()?,
                (_, true) => agent.signal("STOP")?,
                (_, false) => agent.signal("CONT")?,
            }
        }
        Fault::CutLeader | Fault::CutFollower => set_link(host, link)?,
        Fault::CutControllers => {
            for (from, host) in HOSTS.into_iter().enumerate() {
                let mut others = (0..HOSTS.len()).filter(|to| *to != from);
                others.try_for_each(|to| set_path(host, to + 1, link))?;
            }
        }
        Fault::CutLeaderFromEtcd => to_etcd().and_then(|()| from_etcd())?,
        Fault::MuteLeader | Fault::MuteFollower => to_etcd()?,
        Fault::DeafenLeader => from_etcd()?,
        Fault::CutEtcdLeader(cut) => {
            cut_etcd(number, cut, link)?;
            if !is_made {
                until("etcd's servers are together again", || Ok(site.etcd.knows_leader(number)))?;
            }
        }
        Fault::FillLeader | Fault::FillFollower if is_made => {
            // What RocksDB has reserved for its next writes is given back by its end alone.
            signal(process, "KILL")?;
            let host = site.host(number)?;
            fill(host)?;
            let started = host.run(["controller", "start", "local"])?;
            let log = controller_log(host)?;
            let is_told = |text: &str| text.contains(NO_SPACE);
            ensure!(is_told(&log) || is_told(&started.stderr), "a full disk is not told: {started:?}\n{log}");
        }
        Fault::FillLeader | Fault::FillFollower => {
            let host = site.host(number)?;
            fs::remove_file(filler(host))?;
            host.ok(["controller", "start", "local"])?;
        }
        Fault::FillRunningLeader | Fault::FillRunningFollower if is_made => {
            fill_under(site.host(number)?, process)?;
        }
        Fault::FillRunningLeader | Fault::FillRunningFollower => {
            fs::remove_file(filler(site.host(number)?))?;
            until("the store is opened again", || met.has_logged(site, "the store was opened again"))?;
            let now = site.host(number)?.controller_process("local")?;
            ensure!(now == process, "process {now} goes on in the place of {process}");
        }
        Fault::SetLeadersClock(ahead) | Fault::SetFollowersClock(ahead) if is_made => {
            site.host(number)?.set_clock(ahead)?;
        }
        Fault::SetLeadersClock(_) | Fault::SetFollowersClock(_) => {
            let host = site.host(number)?;
            let log = controller_log(host)?;
            ensure!(log.contains("this machine's clock was set"), "a clock that was set is not told: {log}");
            host.set_clock(0)?;
        }
        Fault::RestartAll | Fault::Upgrade => bail!("{fault:?} ends by itself"),
    }
    Ok(())
}

/// Cuts a server of etcd off, or connects it again. Connections stay, and neither end is told.
fn cut_etcd(number: usize, cut: EtcdCut, link: Link) -> anyhow::Result<()> {
    let (own, own_number) = etcd_hosts().nth(number).context("a server of etcd")?;
    let others = NETWORK.into_iter().zip(1..).skip(match cut {
        EtcdCut::FromServers => HOSTS.len(),
        EtcdCut::FromAll => 0,
    });
    others.filter(|(other, _)| *other != own).try_for_each(|(other, other_number)| {
        set_path(own, other_number, link)?;
        set_path(other, own_number, link)
    })
}

/// Returns true if a host's controller has logged a text after its log had this length.
fn has_logged_since(host: &Installation, length: usize, text: &str) -> anyhow::Result<bool> {
    let log = controller_log(host)?;
    Ok(log.get(length..).unwrap_or(&log).contains(text))
}

/// Returns all that a host's controller has logged.
pub(crate) fn controller_log(host: &Installation) -> anyhow::Result<String> {
    Ok(fs::read_to_string(host.path().join("data/controllers/local/controller.log"))?)
}
