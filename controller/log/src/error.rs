//! The errors of a log.

use periapt_host_api::Revision;

use crate::Term;

/// The reason why a log did not do what a controller asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Another controller leads or has led since. Nothing was written.
    #[error("the leadership of term {0} is over: another controller leads")]
    Deposed(Term),
    /// Another entry has the position.
    #[error("position {0} of the log has another entry")]
    Taken(Revision),
    /// The entries up to a position are not in the log any more.
    #[error("the log begins after position {0}: this controller needs a snapshot of another one")]
    Trimmed(Revision),
    /// The log does not answer, or not in time. It is unknown if a write took effect.
    #[error("the log cannot be reached: {0}")]
    Unavailable(String),
    /// The log refuses the request, which had no effect. An operator must act.
    #[error("the log refuses the request: {0}")]
    Refused(String),
    /// The log's content is not that of this program, or of another set of controllers.
    #[error("not a log of periapt: {0}")]
    Foreign(String),
    /// The log's content is damaged.
    #[error("the log is damaged: {0}")]
    Damaged(String),
}

impl LogError {
    /// Returns true if the same call may succeed later without an operator's help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
