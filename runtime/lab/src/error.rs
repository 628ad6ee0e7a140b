//! Why a laboratory stopped.

use periapt_host_api::{
    AgentName, NameError, Refusal, Revision, UnitName, charm::MetadataError, view::FrameGap,
};
use periapt_model::LoadError;

/// A refused command, a mistaken name, or a defect that the run uncovered.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The controller refused.
    #[error("{}: {}", .0.code, .0.message)]
    Refused(#[from] Refusal),
    /// Something is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A charm's metadata makes no charm.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// Something that was spoken of is not here.
    #[error("there is no {kind} {name:?} here")]
    Unknown {
        /// What it would be.
        kind: &'static str,
        /// As it was named.
        name: String,
    },
    /// An answer of another kind than the question has.
    #[error("the controller answered with something else: {0}")]
    OtherAnswer(String),
    /// Defect: a frame does not fit where the stream left off.
    #[error("a frame does not apply: {0}")]
    Frame(#[from] FrameGap),
    /// Defect: frames, applied, do not give the view (`design.md` section 3, item 3).
    #[error("the mirror of agent {agent} differs from its view at revision {revision}: {what}")]
    MirrorDiffers {
        /// Whose.
        agent: AgentName,
        /// Where.
        revision: Revision,
        /// The first things that differ.
        what: String,
    },
    /// Defect: something cannot be written as JSON, or reads back as something else.
    #[error("{what} does not travel: {reason}")]
    DoesNotTravel {
        /// What.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Defect: a commit was called stale, and nothing tells the runner why.
    #[error(
        "a commit of unit {unit} is stale, and the newest view is the one that it was decided on: {reason}"
    )]
    StaleForNothing {
        /// Whose.
        unit: UnitName,
        /// What the controller said.
        reason: String,
    },
    /// Defect: the same commit, sent again, got another answer.
    #[error("a commit of unit {unit} was taken, and when it was sent again: {reason}")]
    AnswerChanged {
        /// Whose.
        unit: UnitName,
        /// What the controller said the second time.
        reason: String,
    },
    /// Defect: a hook was run before it was decided what becomes of the one before it.
    #[error("unit {unit} runs {event} before it is decided what becomes of the hook before that")]
    NotSerial {
        /// Whose.
        unit: UnitName,
        /// Which.
        event: String,
    },
    /// Defect: a hook was run from a record that the unit has left behind: it does not see its own last commit.
    #[error("unit {unit} runs {event} from an older record than that of its last commit")]
    OldView {
        /// Whose.
        unit: UnitName,
        /// Which.
        event: String,
    },
    /// Defect: a frame changed what a unit is to do, and the unit would not have been woken.
    #[error("a frame is said not to concern unit {unit}, which decided: {before}; and now: {after}")]
    NotTouched {
        /// Whose.
        unit: UnitName,
        /// What it decided before the frame.
        before: String,
        /// What it decides after it.
        after: String,
    },
    /// Defect: there is always one more thing to do.
    #[error("nothing settles after {rounds} rounds; the last hooks were: {}", .last.join(", "))]
    NeverSettles {
        /// How many rounds were tried.
        rounds: usize,
        /// What ran last.
        last: Vec<String>,
    },
    /// Defect: what the controller stored makes no state.
    #[error("the stored entities cannot be loaded: {0}")]
    Load(#[from] LoadError),
    /// Defect: after a restart the controller knows something else than before.
    #[error("a restart of the controller changed what agent {agent} sees: {what}")]
    RestartChanged {
        /// Whose view.
        agent: AgentName,
        /// The first things that differ.
        what: String,
    },
}

impl LabError {
    pub(crate) fn unknown(kind: &'static str, name: impl ToString) -> Self {
        Self::Unknown { kind, name: name.to_string() }
    }

    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}
