//! The quarantine of suspects: hooks that were in flight when a runner died run first, one at a time and alone.

use std::sync::Arc;

use periapt_uniter::executor::TrialEnd;

use super::units::Units;

impl Units {
    /// Tries each suspect. A suspect is cleared when it ends or is not due any more. It stays a suspect if its charm is
    /// not available.
    pub(super) async fn try_suspects(self: &Arc<Self>) {
        for suspect in &self.runner.start.suspects {
            let unit = self.suspected(&suspect.unit);
            match self.try_suspect(&unit, suspect.operation, suspect.deaths).await {
                Some(TrialEnd::Cleared) => self.announce_end(&suspect.unit, suspect.operation, None),
                Some(TrialEnd::Left) => {
                    let unit = &suspect.unit;
                    tracing::info!(%unit, "a hook that may have killed a runner waits for its charm");
                }
                None => {}
            }
        }
    }
}
