//! The CPU time of an installation's processes.

use std::{fs, ops};

use periapt_tests::{Installation, Part, parts};

/// The kernel's unit of CPU time, in seconds: 100 Hz on all current Linux systems.
const TICK: f64 = 0.01;

/// CPU time of each part, in seconds.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) controller: f64,
    pub(crate) keeper: f64,
    /// The CPU time of runners and of the keeper's helpers, including those that have ended.
    pub(crate) runner: f64,
}

impl Cpu {
    /// Returns the CPU time since the start of the processes.
    pub(crate) fn of(periapt: &Installation) -> anyhow::Result<Self> {
        let mut cpu = Self::default();
        for (pid, part) in parts(periapt)? {
            // A process that has just ended counts among its parent's children.
            let Some((own, children)) = times(pid) else { continue };
            match part {
                Part::Controller => cpu.controller += own + children,
                Part::Keeper => {
                    cpu.keeper += own;
                    cpu.runner += children;
                }
                Part::Runner => cpu.runner += own + children,
            }
        }
        Ok(cpu)
    }

    /// Returns the sum.
    pub(crate) fn all(&self) -> f64 {
        self.controller + self.keeper + self.runner
    }
}

impl ops::Sub for Cpu {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            controller: self.controller - before.controller,
            keeper: self.keeper - before.keeper,
            runner: self.runner - before.runner,
        }
    }
}

impl ops::AddAssign for Cpu {
    fn add_assign(&mut self, more: Self) {
        self.controller += more.controller;
        self.keeper += more.keeper;
        self.runner += more.runner;
    }
}

/// Returns the CPU time of a process and of its ended children.
fn times(pid: u32) -> Option<(f64, f64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces. The state and ten more fields stand between it and the times.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest.split_whitespace().skip(11).map(|word| word.parse::<f64>().ok());
    let mut next = || ticks.next()?;
    let (user, system, children_user, children_system) = (next()?, next()?, next()?, next()?);
    Some(((user + system) * TICK, (children_user + children_system) * TICK))
}
