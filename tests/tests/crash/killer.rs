//! The killer, which ends processes at random moments.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, ensure};

use crate::{
    random::RandomNumbers,
    services::{Services, command_line, kill_child},
};

/// The longest time from a kill to the next commit of a hook, on a busy machine. A unit whose runner dies three times
/// is in error, and is retried after some seconds.
const RECOVERS_WITHIN: Duration = Duration::from_secs(90);
/// The longest time that the children of a dead keeper may live.
const ORPHANS_LIVE: Duration = Duration::from_secs(20);
/// The interval between checks.
const LOOK: Duration = Duration::from_millis(5);

/// Kills processes at random moments and starts them again.
#[derive(Debug)]
pub(crate) struct Killer {
    kills: u32,
    random: RandomNumbers,
    done: Arc<AtomicBool>,
}

/// The number of kills of each kind.
#[derive(Debug, Default)]
pub(crate) struct KillCounts {
    controllers: u32,
    keepers: u32,
    runners: u32,
}

impl fmt::Display for KillCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controllers, keepers, runners } = self;
        write!(f, "killed: {controllers} controllers, {keepers} keepers, {runners} of their children")
    }
}

impl KillCounts {
    fn all(&self) -> u32 {
        self.controllers + self.keepers + self.runners
    }
}

impl Killer {
    /// Creates a killer for this many kills.
    pub(crate) fn new(kills: u32, random: RandomNumbers) -> Self {
        Self { kills, random, done: Arc::default() }
    }

    /// Returns the flag that ends the run. The killer sets it after its last kill or on failure; if another thread
    /// sets it, the killer stops.
    pub(crate) fn done(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.done)
    }

    /// Kills until done. `progress` counts committed hooks.
    pub(crate) fn run(mut self, services: &mut Services, progress: &AtomicU64) -> anyhow::Result<KillCounts> {
        let counts = self.kill_all(services, progress);
        self.done.store(true, Ordering::Release);
        counts
    }

    fn kill_all(&mut self, services: &mut Services, progress: &AtomicU64) -> anyhow::Result<KillCounts> {
        let mut counts = KillCounts::default();
        while counts.all() < self.kills {
            // Mostly kills during normal work; sometimes while the last victim is still restarting.
            if self.random.below(4) > 0 {
                self.works_again(services, progress)?;
            }
            thread::sleep(Duration::from_micros(self.random.below(300_000)));
            services.check()?;
            match self.random.below(3) {
                0 => {
                    services.controller.kill()?;
                    self.leave_down();
                    services.restart_controller()?;
                    counts.controllers += 1;
                }
                1 => {
                    let children = services.keeper.children();
                    services.keeper.kill()?;
                    no_orphans(&children)?;
                    self.leave_down();
                    services.restart_keeper()?;
                    counts.keepers += 1;
                }
                _ => {
                    let children = services.keeper.children();
                    if children.is_empty() {
                        continue;
                    }
                    if kill_child(services.keeper.id(), *self.random.pick(&children))? {
                        counts.runners += 1;
                    }
                }
            }
        }
        self.works_again(services, progress)?;
        Ok(counts)
    }

    /// Waits until new hooks are committed.
    fn works_again(&self, services: &mut Services, progress: &AtomicU64) -> anyhow::Result<()> {
        let (before, began) = (progress.load(Ordering::Acquire), Instant::now());
        while progress.load(Ordering::Acquire) == before {
            services.check()?;
            if self.done.load(Ordering::Acquire) {
                bail!("nobody works any more");
            }
            ensure!(began.elapsed() < RECOVERS_WITHIN, "no hook was committed for {RECOVERS_WITHIN:?}");
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits for a random time before the restart in half of the cases.
    fn leave_down(&mut self) {
        if self.random.below(2) == 0 {
            thread::sleep(Duration::from_millis(self.random.below(200)));
        }
    }
}

/// Checks that runners end with their keeper (`docs/design/sandbox.md`).
fn no_orphans(children: &[u32]) -> anyhow::Result<()> {
    let began = Instant::now();
    for &child in children {
        while let Some(line) = command_line(child).filter(|line| line.contains("periapt")) {
            ensure!(began.elapsed() < ORPHANS_LIVE, "process {child} outlives its keeper: {line}");
            thread::sleep(LOOK);
        }
    }
    Ok(())
}
