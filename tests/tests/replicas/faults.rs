//! The faults of the rounds, and how each is mended.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_tests::{Direction, Link, set_direction, set_link, signal};

use crate::{
    site::{HOSTS, Site, until},
    story::Story,
};

/// The time for which a fault lasts at least, unless a process is killed: longer than the lease of the controller that
/// leads.
const LASTING: Duration = Duration::from_secs(4);

/// A fault, and the number of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillLeader,
    PauseLeader,
    KillFollower,
    KillEtcd(usize),
    PauseEtcd(usize),
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
    /// Nothing that a follower sends reaches etcd.
    MuteFollower,
}

/// Makes a fault, waits until clients are answered, and mends it. Returns the time for which no client was answered.
pub(crate) fn round(site: &mut Site, story: &Story, fault: Fault) -> anyhow::Result<Duration> {
    let leader = (0..3).find_map(|asked| site.leader(asked).ok().flatten()).context("a leader")?;
    let follower = (leader + 1) % 3;
    let (began, answered) = (Instant::now(), story.answered());
    let met = match fault {
        Fault::KillFollower | Fault::CutFollower | Fault::MuteFollower => follower,
        _ => leader,
    };
    let process = site.host(met)?.controller_process("local")?;
    set(site, fault, met, process, Link::Down)?;
    // Answers that were on their way do not count.
    until("clients are answered", || Ok(story.answered() > answered + 3))?;
    let gap = began.elapsed();
    if !matches!(fault, Fault::KillLeader | Fault::KillFollower | Fault::KillEtcd(_)) {
        thread::sleep(LASTING.saturating_sub(gap));
    }
    set(site, fault, met, process, Link::Up)?;
    story.all_are_answered()?;
    Ok(gap)
}

/// Makes a fault of a host's controller, or mends it.
fn set(site: &mut Site, fault: Fault, met: usize, process: u32, link: Link) -> anyhow::Result<()> {
    let host = *HOSTS.get(met).context("a host")?;
    let towards = |directions: &[Direction]| {
        directions.iter().try_for_each(|direction| set_direction(host, met + 1, *direction, link))
    };
    let is_made = link == Link::Down;
    match fault {
        Fault::KillLeader | Fault::KillFollower if is_made => signal(process, "KILL")?,
        Fault::KillLeader | Fault::KillFollower => {
            site.host(met)?.ok(["controller", "start", "local"])?;
        }
        Fault::PauseLeader => signal(process, if is_made { "STOP" } else { "CONT" })?,
        Fault::KillEtcd(number) if is_made => site.etcd.kill(number),
        Fault::KillEtcd(number) => site.etcd.start_server(number),
        Fault::PauseEtcd(number) if is_made => site.etcd.pause(number),
        Fault::PauseEtcd(number) => site.etcd.resume(number),
        Fault::CutLeader | Fault::CutFollower => set_link(host, link)?,
        Fault::CutLeaderFromEtcd => towards(&[Direction::Out, Direction::In])?,
        Fault::MuteLeader | Fault::MuteFollower => towards(&[Direction::Out])?,
        Fault::DeafenLeader => towards(&[Direction::In])?,
    }
    Ok(())
}
