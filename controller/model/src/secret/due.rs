//! The clock of secrets: rotations and expiries whose time has come are marked, and the view tells the owner
//! (S-9).

use periapt_host_api::Timestamp;

use crate::{
    entity::{Secret, SecretExpiry},
    root::{Bell, ModelState},
    transaction::Transaction,
};

/// The next time that a secret of a model waits for.
pub(crate) fn next_bell(state: &ModelState) -> Option<Timestamp> {
    state.bells().next().map(|(at, _, _)| *at)
}

/// Marks what is due, as far as the commit has room: each mark takes its bell away.
pub(crate) fn ring(tx: &mut Transaction<'_>) {
    while tx.has_room(1) {
        let Some((_, id, bell)) = tx.state.bells().next().filter(|(at, _, _)| *at <= tx.now()).copied()
        else {
            return;
        };
        match bell {
            Bell::Rotate => {
                let Some(secret) = tx.state.secret(&id).cloned() else { return };
                tx.put(Secret { rotate_due: true, ..Secret::clone(&secret) });
            }
            Bell::Expire(revision) => {
                let Some(expiry) = tx.state.secret_expiry(&id, revision) else { return };
                tx.put(SecretExpiry { expire_due: true, tell_at: None, ..expiry });
            }
        }
    }
}
