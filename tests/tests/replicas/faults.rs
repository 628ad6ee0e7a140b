//! The faults of the rounds, and how each is mended.

use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Direction, Installation, Link, set_direction, set_link, signal};

use crate::{
    site::{HOSTS, Site, until},
    story::Story,
};

/// The times in seconds for which the faults of a lap last at least, unless a process is killed: longer than the lease of
/// the controller that leads, and at last longer than the lease of a unit that leads, too.
const LASTING: [u64; 12] = [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 20, 90];

/// A fault, and the number of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillLeader,
    PauseLeader,
    KillFollower,
    KillEtcd(usize),
    PauseEtcd(usize),
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
    /// Nothing that a follower sends reaches etcd.
    MuteFollower,
    /// The leading controller is killed, and its disk is full when it starts again.
    FillLeader,
    /// The same happens to a follower.
    FillFollower,
    /// The wall clock of the leading controller's host is set so many seconds ahead.
    SetLeadersClock(i64),
    /// The same happens to a follower's host.
    SetFollowersClock(i64),
}

/// Makes a fault, waits until clients are answered, and mends it. The lap is the number of times that all faults were made
/// before. Returns the time for which no client was answered.
pub(crate) fn round(site: &mut Site, story: &Story, lap: usize, fault: Fault) -> anyhow::Result<Duration> {
    let leader = (0..3).find_map(|asked| site.leader(asked).ok().flatten()).context("a leader")?;
    let follower = (leader + 1) % 3;
    let (began, answered) = (Instant::now(), story.answered());
    let met = match fault {
        Fault::KillFollower
        | Fault::CutFollower
        | Fault::MuteFollower
        | Fault::FillFollower
        | Fault::SetFollowersClock(_) => follower,
        _ => leader,
    };
    let process = site.host(met)?.controller_process("local")?;
    set(site, fault, met, process, Link::Down)?;
    // Answers that were on their way do not count.
    until("clients are answered", || Ok(story.answered() > answered + 3))?;
    let gap = began.elapsed();
    if !matches!(fault, Fault::KillLeader | Fault::KillFollower | Fault::KillEtcd(_) | Fault::KillAgent(_)) {
        let lasting = LASTING.get(lap % LASTING.len()).copied().unwrap_or_default();
        thread::sleep(Duration::from_secs(lasting).saturating_sub(gap));
    }
    set(site, fault, met, process, Link::Up)?;
    story.all_are_answered()?;
    Ok(gap)
}

/// Puts what a host's controller keeps on a disk of its own, which is small. The test has a mount namespace of its own.
pub(crate) fn on_small_disk(host: &Installation) -> anyhow::Result<()> {
    const MOVE: &str = "set -e
mkdir disk
mount -t tmpfs -o size=256m tmpfs disk
cp -a controller/. disk/
mv controller old
mkdir controller
mount --move disk controller
rm -r old disk";
    host.ok(["controller", "stop", "local"])?;
    let directory = host.path().join("data/controllers/local");
    let done = Command::new("sh").args(["-c", MOVE]).current_dir(directory).output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    host.ok(["controller", "start", "local"]).map(drop)
}

/// Fills the disk of a host's controller to its last byte.
fn fill(host: &Installation) -> anyhow::Result<()> {
    let mut file = File::create(filler(host))?;
    for size in [1 << 20, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
    Ok(())
}

fn filler(host: &Installation) -> PathBuf {
    host.path().join("data/controllers/local/controller/filler")
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
        Fault::CutLeaderFromEtcd => towards(&[Direction::Out, Direction::In])?,
        Fault::MuteLeader | Fault::MuteFollower => towards(&[Direction::Out])?,
        Fault::DeafenLeader => towards(&[Direction::In])?,
        Fault::FillLeader | Fault::FillFollower if is_made => {
            // What RocksDB has reserved for its next writes is given back by its end alone.
            signal(process, "KILL")?;
            let host = site.host(met)?;
            fill(host)?;
            let started = host.run(["controller", "start", "local"])?;
            let log = controller_log(host)?;
            let is_told = |text: &str| text.contains("No space left on device");
            ensure!(is_told(&log) || is_told(&started.stderr), "a full disk is not told: {started:?}\n{log}");
        }
        Fault::FillLeader | Fault::FillFollower => {
            let host = site.host(met)?;
            fs::remove_file(filler(host))?;
            host.ok(["controller", "start", "local"])?;
        }
        Fault::SetLeadersClock(ahead) | Fault::SetFollowersClock(ahead) if is_made => {
            site.host(met)?.set_clock(ahead)?;
        }
        Fault::SetLeadersClock(_) | Fault::SetFollowersClock(_) => {
            let host = site.host(met)?;
            let log = controller_log(host)?;
            ensure!(log.contains("this machine's clock was set"), "a clock that was set is not told: {log}");
            host.set_clock(0)?;
        }
    }
    Ok(())
}

fn controller_log(host: &Installation) -> anyhow::Result<String> {
    Ok(fs::read_to_string(host.path().join("data/controllers/local/controller.log"))?)
}
