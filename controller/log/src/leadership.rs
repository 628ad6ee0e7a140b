//! The leadership among controllers.

use std::any::Any;

use tokio_util::sync::CancellationToken;

use crate::{Announcement, Term};

/// The controller that leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLeader {
    /// The term.
    pub term: Term,
    /// The controller's announcement.
    pub announcement: Announcement,
}

/// The leadership that this controller holds. The log renews it until it is lost; dropping it gives it up.
pub struct Leadership {
    term: Term,
    lost: CancellationToken,
    /// The part that renews, and gives up on drop.
    _renewal: Box<dyn Any + Send + Sync>,
}

impl Leadership {
    /// Makes a leadership. `lost` is cancelled once it may be over; dropping `renewal` gives it up.
    pub fn new(term: Term, lost: CancellationToken, renewal: impl Any + Send + Sync) -> Self {
        Self { term, lost, _renewal: Box::new(renewal) }
    }

    /// Returns the term.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Waits until the leadership may be over, because it could not be renewed in time. The log's checks of the term are
    /// what guards the log: a controller may still append then, if no other leads yet.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leadership").field("term", &self.term).finish_non_exhaustive()
    }
}
