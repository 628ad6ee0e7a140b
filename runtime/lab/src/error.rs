//! Errors of a laboratory.

use periapt_host_api::{
    AgentName, NameError, Refusal, Revision, UnitName, charm::MetadataError, view::FrameGap,
};
use periapt_model::LoadError;
use periapt_pebble::PodRefusal;

/// A refused command, a wrong name, or a defect that the run uncovered.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The controller refused a command.
    #[error("{}: {}", .0.code, .0.message)]
    Refused(#[from] Refusal),
    /// A container's Pebble refused a request.
    #[error("Pebble refuses: {0}")]
    Pebble(#[from] PodRefusal),
    /// A text is no valid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A charm's metadata is invalid.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The named thing does not exist here.
    #[error("there is no {kind} {name:?} here")]
    Unknown {
        /// The kind of thing.
        kind: &'static str,
        /// The name as given.
        name: String,
    },
    /// The answer has another kind than the request.
    #[error("the controller answered with something else: {0}")]
    OtherAnswer(String),
    /// Defect: a frame does not start where the stream ended.
    #[error("a frame does not apply: {0}")]
    Frame(#[from] FrameGap),
    /// Defect: the frames, applied in order, differ from the view (`docs/design/views.md`).
    #[error("the mirror of agent {agent} differs from its view at revision {revision}: {what}")]
    MirrorDiffers {
        /// The agent of the mirror.
        agent: AgentName,
        /// The revision.
        revision: Revision,
        /// The first differences.
        what: String,
    },
    /// Defect: a value cannot be written as JSON, or reads back as another value.
    #[error("{what} does not travel: {reason}")]
    DoesNotTravel {
        /// The kind of value.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// Defect: a commit was stale without any change that tells the runner why.
    #[error(
        "a commit of unit {unit} is stale, and the newest view is the one that it was decided on: {reason}"
    )]
    StaleForNothing {
        /// The unit.
        unit: UnitName,
        /// The controller's reason.
        reason: String,
    },
    /// Defect: a repeated commit got another answer.
    #[error("a commit of unit {unit} was taken, and when it was sent again: {reason}")]
    AnswerChanged {
        /// The unit.
        unit: UnitName,
        /// The controller's second answer.
        reason: String,
    },
    /// Defect: a hook ran before the commit of the last one was decided.
    #[error("unit {unit} runs {event} before it is decided what becomes of the hook before that")]
    NotSerial {
        /// The unit.
        unit: UnitName,
        /// The hook.
        event: String,
    },
    /// Defect: a hook ran from a record that the unit has replaced, so it does not see its own last commit.
    #[error("unit {unit} runs {event} from an older record than that of its last commit")]
    OldView {
        /// The unit.
        unit: UnitName,
        /// The hook.
        event: String,
    },
    /// Defect: a frame changed a unit's decision without waking the unit.
    #[error("a frame is said not to concern unit {unit}, which decided: {before}; and now: {after}")]
    NotTouched {
        /// The unit.
        unit: UnitName,
        /// The decision before the frame.
        before: String,
        /// The decision after the frame.
        after: String,
    },
    /// Defect: the model never comes to rest.
    #[error("nothing settles after {rounds} rounds; the last hooks were: {}", .last.join(", "))]
    NeverSettles {
        /// The number of rounds.
        rounds: usize,
        /// The last hooks.
        last: Vec<String>,
    },
    /// Defect: the core of a pod wants to be woken again and again while no time passes.
    #[error("the pods of an agent had {events} events at once")]
    PodsNeverRest {
        /// The number of events.
        events: usize,
    },
    /// Defect: the stored entities make no valid state.
    #[error("the stored entities cannot be loaded: {0}")]
    Load(#[from] LoadError),
    /// Defect: the controller's state differs after a restart.
    #[error("a restart of the controller changed what agent {agent} sees: {what}")]
    RestartChanged {
        /// The agent whose view differs.
        agent: AgentName,
        /// The first differences.
        what: String,
    },
}

impl LabError {
    pub(crate) fn unknown(kind: &'static str, name: impl ToString) -> Self {
        Self::Unknown { kind, name: name.to_string() }
    }

    /// Returns the refusal, if the error is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}
