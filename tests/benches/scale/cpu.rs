//! The CPU time of an installation's processes.

use std::ops;

use periapt_tests::{CpuTime, Installation, Part, parts};

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
            let Some(CpuTime { own, children }) = CpuTime::of(pid) else { continue };
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
