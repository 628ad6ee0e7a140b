//! What can happen next.

use std::fmt;

use periapt_host_api::{
    UnitName,
    command::{Command, ResolveMode},
};

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Move {
    /// A unit's next operation is decided, and its handler runs well.
    Begin(UnitName),
    /// It fails, and that is committed at once. What could happen in between would come to the same before or after it:
    /// of a failed hook nothing is written but the unit's own record, which no other move reads.
    Fail(UnitName),
    /// What ran is committed.
    Finish(UnitName),
    /// A unit's next operation as a whole, while another's is in progress.
    Step(UnitName),
    /// A unit is the first of its application to claim that it leads.
    Claim(UnitName),
    /// Controller and keepers do what they have to.
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
    /// An operator answers a failed hook.
    Resolve(UnitName, ResolveMode),
    /// An operator asks for something else, by its name in the scene.
    Ask(&'static str, Box<Command>),
}

impl Move {
    /// Whether it happens by itself sooner or later: no operator is needed, no handler fails and nothing dies.
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

    /// In one word.
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
