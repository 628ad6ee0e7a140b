//! The log in etcd that a bootstrap begins, and removes when it is undone.

use periapt_controller::BackupKeys;
use periapt_host_api::{Revision, StoreId};

use super::Bootstrap;
use crate::{
    data::starting::Starting,
    error::{Failure, Result},
};

/// A log that a bootstrap has begun, or may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewLog {
    /// Its identity, which no other log has.
    store: StoreId,
    /// The position after which it begins.
    after: Revision,
}

impl Bootstrap {
    /// Begins the log of the new controller, and notes it for the case that the bootstrap is undone. Does nothing if no log
    /// is named.
    pub(super) async fn begin_log(
        &self,
        noted: &mut Option<NewLog>,
        store: StoreId,
        after: Revision,
    ) -> Result<()> {
        if self.log.is_given() {
            // Before the call: etcd may carry it out though its answer is lost, or the bootstrap is interrupted.
            *noted = Some(NewLog { store, after });
        }
        self.log.begin(store, after).await
    }

    /// Ends the started processes, and removes the directory and the begun log.
    pub(super) async fn undo(&self, starting: Starting, log: Option<NewLog>) -> Result<()> {
        let Some(NewLog { store, after }) = log else { return starting.undo().await };
        if let Err(failure) = starting.end().await {
            // The controller may still run.
            return Err(failure.and_undoing(Err(Failure::new("its log stays in etcd"))));
        }
        // Not before its end: until then it may have made its keys, and have led. One without keys has never led.
        let keys = BackupKeys::in_directory(&starting.directory().controller());
        let keys = keys.and_then(|keys| keys.fingerprint()).ok();
        let removed = starting.remove();
        let log = self.log.remove(store, after, keys).await;
        match removed {
            Ok(()) => log,
            Err(failure) => Err(failure.and_undoing(log)),
        }
    }
}
