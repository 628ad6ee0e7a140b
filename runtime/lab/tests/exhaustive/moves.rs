//! The moves that can happen next.

use std::fmt;

use periapt_host_api::{
    UnitName,
    command::{Command, ResolveMode},
};

/// One event.
#[derive(Debug, Clone)]
pub(super) enum Move {
    /// A unit's next operation is decided, and its handler succeeds.
    Begin(UnitName),
    /// A unit's next handler fails, which is committed at once. An event in between would have the same result before
    /// or after: a failed hook writes only the unit's own record, which no other move reads.
    Fail(UnitName),
    /// The hook that ran is committed.
    Finish(UnitName),
    /// A unit's next operation runs as a whole, while another's is in progress.
    Step(UnitName),
    /// A unit claims leadership, the first of its application to do so.
    Claim(UnitName),
    /// Controller and keepers do their due work.
    Tend,
    /// Time passes, longer than anything waits.
    Pass,
    /// The runner dies and is started again.
    Crash,
    /// The agent dies.
    Kill,
    /// The agent is started.
    Revive,
    /// The controller dies and is started again.
    Restart,
    /// An operator resolves a failed hook.
    Resolve(UnitName, ResolveMode),
    /// An operator sends another command, by its name in the scene.
    Ask(&'static str, Box<Command>),
}

impl Move {
    /// Returns true if it happens by itself sooner or later: without an operator, a failed handler or a death.
    pub(super) fn is_hopeful(&self) -> bool {
        matches!(
            self,
            Self::Begin(_)
                | Self::Finish(_)
                | Self::Step(_)
                | Self::Claim(_)
                | Self::Tend
                | Self::Pass
                | Self::Revive
        )
    }

    /// Returns the kind in one word.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Begin(_) => "begin",
            Self::Fail(_) => "fail",
            Self::Finish(_) => "finish",
            Self::Step(_) => "step",
            Self::Claim(_) => "claim",
            Self::Tend => "tend",
            Self::Pass => "pass",
            Self::Crash => "crash",
            Self::Kill => "kill",
            Self::Revive => "revive",
            Self::Restart => "restart",
            Self::Resolve(..) => "resolve",
            Self::Ask(name, _) => name,
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin(unit)
            | Self::Fail(unit)
            | Self::Finish(unit)
            | Self::Step(unit)
            | Self::Claim(unit) => {
                write!(f, "{} {unit}", self.kind())
            }
            Self::Resolve(unit, mode) => write!(f, "resolve {unit} ({mode:?})"),
            _ => f.write_str(self.kind()),
        }
    }
}
