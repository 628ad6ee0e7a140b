//! Due rotations and expiries of secrets. The worker marks them, and the view tells the owner (S-9).

use periapt_host_api::Timestamp;

use crate::{
    entity::{Secret, SecretExpiry},
    root::{ModelState, SecretDue},
    transaction::Transaction,
};

/// Returns the time of the next rotation or expiry in a model.
pub(crate) fn next_due(state: &ModelState) -> Option<Timestamp> {
    state.secrets_due().next().map(|(at, _, _)| *at)
}

/// Marks due rotations and expiries while the commit has room. A mark removes the due time.
pub(crate) fn mark_due(tx: &mut Transaction<'_>) {
    while tx.has_room(1) {
        let Some((_, id, due)) = tx.state.secrets_due().next().filter(|(at, _, _)| *at <= tx.now()).copied()
        else {
            return;
        };
        match due {
            SecretDue::Rotate => {
                let Some(secret) = tx.state.secret(&id).cloned() else { return };
                tx.put(Secret { rotate_due: true, ..Secret::clone(&secret) });
            }
            SecretDue::Expire(revision) => {
                let Some(expiry) = tx.state.secret_expiry(&id, revision) else { return };
                tx.put(SecretExpiry { expire_due: true, tell_at: None, ..expiry });
            }
        }
    }
}
