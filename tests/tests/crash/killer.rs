//! Who kills.

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
    chance::Chance,
    services::{Services, command_line, kill_child},
};

/// How long it may take after a kill until a hook is committed again, on a machine that has other work. A unit whose
/// runner dies under it three times is in error, and tried again after some seconds.
const RECOVERS_WITHIN: Duration = Duration::from_secs(90);
/// How long what a dead keeper leaves behind may live.
const ORPHANS_LIVE: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(5);

/// Kills some processes at random moments, and starts them again.
#[derive(Debug)]
pub(crate) struct Killer {
    kills: u32,
    chance: Chance,
    done: Arc<AtomicBool>,
}

/// How many of each kind were killed.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    controllers: u32,
    keepers: u32,
    runners: u32,
}

impl fmt::Display for Deeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { controllers, keepers, runners } = self;
        write!(f, "killed: {controllers} controllers, {keepers} keepers, {runners} of their children")
    }
}

impl Deeds {
    fn all(&self) -> u32 {
        self.controllers + self.keepers + self.runners
    }
}

impl Killer {
    /// One who kills so many.
    pub(crate) fn new(kills: u32, chance: Chance) -> Self {
        Self { kills, chance, done: Arc::default() }
    }

    /// Set when it has killed all that it should, or has given up; it gives up when it is set by another.
    pub(crate) fn done(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.done)
    }

    /// Does so; `progress` counts committed hooks.
    pub(crate) fn run(mut self, services: &mut Services, progress: &AtomicU64) -> anyhow::Result<Deeds> {
        let deeds = self.kill_all(services, progress);
        self.done.store(true, Ordering::Release);
        deeds
    }

    fn kill_all(&mut self, services: &mut Services, progress: &AtomicU64) -> anyhow::Result<Deeds> {
        let mut deeds = Deeds::default();
        while deeds.all() < self.kills {
            // Mostly in the middle of the work; now and then while the last victim is still coming back.
            if self.chance.below(4) > 0 {
                self.works_again(services, progress)?;
            }
            thread::sleep(Duration::from_micros(self.chance.below(300_000)));
            services.check()?;
            match self.chance.below(3) {
                0 => {
                    services.controller.kill()?;
                    self.leave_down();
                    services.restart_controller()?;
                    deeds.controllers += 1;
                }
                1 => {
                    let children = services.keeper.children();
                    services.keeper.kill()?;
                    no_orphans(&children)?;
                    self.leave_down();
                    services.restart_keeper()?;
                    deeds.keepers += 1;
                }
                _ => {
                    let children = services.keeper.children();
                    if children.is_empty() {
                        continue;
                    }
                    if kill_child(services.keeper.id(), *self.chance.pick(&children))? {
                        deeds.runners += 1;
                    }
                }
            }
        }
        self.works_again(services, progress)?;
        Ok(deeds)
    }

    /// Waits until hooks are committed that were not when it was called.
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

    /// Half of the time somebody starts it at once.
    fn leave_down(&mut self) {
        if self.chance.below(2) == 0 {
            thread::sleep(Duration::from_millis(self.chance.below(200)));
        }
    }
}

/// A runner ends with its keeper (`design.md` section 5).
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
