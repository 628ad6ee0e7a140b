//! The clock of secrets: rotations and expiries whose time has come are marked, and the view tells the owner
//! (S-9).

use periapt_host_api::Timestamp;

use crate::{
    entity::{Secret, SecretContent},
    root::{Bell, ModelState},
    transaction::Transaction,
};

/// How many are marked in one commit.
const BELLS_PER_STEP: usize = 50;

/// The next time that a secret of a model waits for.
pub(crate) fn next_bell(state: &ModelState) -> Option<Timestamp> {
    state.bells().next().map(|(at, _, _)| *at)
}

/// Marks what is due.
pub(crate) fn ring(tx: &mut Transaction<'_>) {
    let now = tx.now();
    let due: Vec<_> =
        tx.state.bells().take_while(|(at, _, _)| *at <= now).take(BELLS_PER_STEP).copied().collect();
    for (_, id, bell) in due {
        match bell {
            Bell::Rotate => {
                if let Some(secret) = tx.state.secret(&id).cloned() {
                    tx.put(Secret { rotate_due: true, ..Secret::clone(&secret) });
                }
            }
            Bell::Expire(revision) => {
                // Content that outlives its secret for a moment rings for nobody, but must not ring for ever.
                if let Some(content) = tx.state.secret_content(&id, revision).cloned() {
                    let content = SecretContent::clone(&content);
                    tx.put(SecretContent { expire_due: true, tell_at: None, ..content });
                }
            }
        }
    }
}
