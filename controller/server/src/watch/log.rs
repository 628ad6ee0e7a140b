//! Followers of logs: each reads for itself after a write in its model.

use std::time::Duration;

use periapt_host_api::ModelUuid;

use super::Topic;
use crate::published::Published;

/// The topic of a model's log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogOf(pub(crate) ModelUuid);

impl Topic for LogOf {
    type Shared = ();

    /// The readers are people, and each look is a read of the store.
    const PACE: Duration = Duration::from_millis(20);
    /// A follower of a quiet log must not keep old states of all models alive.
    const AGAIN: Option<Duration> = Some(Duration::from_secs(60));
    const OF_ALL: bool = false;

    fn model(&self) -> ModelUuid {
        self.0
    }

    /// Records are always written together with an entity of their model.
    fn differs(&self, before: &Published, after: &Published) -> bool {
        let continues = before.store == after.store && before.revision() <= after.revision();
        !continues || after.changed.model(&self.0) > before.changed.model(&self.0)
    }
}
