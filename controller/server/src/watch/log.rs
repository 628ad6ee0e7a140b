//! Who follows a log: each reads for itself, when its model was written.

use std::time::Duration;

use periapt_host_api::ModelUuid;

use super::Topic;
use crate::published::Published;

/// A model's log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogOf(pub(crate) ModelUuid);

impl Topic for LogOf {
    type Shared = ();

    /// People read; each look is a read of the store.
    const PACE: Duration = Duration::from_millis(20);
    /// So that a follower of a log that nobody writes keeps no old state of all models alive.
    const AGAIN: Option<Duration> = Some(Duration::from_secs(60));
    const OF_ALL: bool = false;

    fn model(&self) -> ModelUuid {
        self.0
    }

    /// Records stand beside an entity that was written with them.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        let continues = before.store == after.store && before.revision() <= after.revision();
        !continues || after.changed.model(&self.0) > before.changed.model(&self.0)
    }
}
