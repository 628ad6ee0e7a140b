//! Lapsed leases: leadership is taken from a unit that did not renew, once somebody else could take it.

use periapt_host_api::{ApplicationName, Timestamp, status::Life};

use crate::{
    entity::Application,
    root::{ModelState, Root},
    transaction::Transaction,
};

/// Whether a unit other than the holder could claim. While nobody can, a holder that was away for a while keeps
/// its leadership: taking it would only make the charm hear of it twice.
pub(crate) fn somebody_else_could_lead(
    root: &Root,
    state: &ModelState,
    application: &ApplicationName,
    now: Timestamp,
) -> bool {
    let holder = state.application(application).and_then(|application| application.leader.as_ref());
    let Some(holder) = holder else { return false };
    state.units_of(application).any(|unit| {
        unit.name != holder.unit
            && unit.life == Life::Alive
            && state.agent_of(unit).is_some_and(|agent| root.is_alive(agent, now))
    })
}

/// Takes the leadership of a holder whose lease lapsed (D-3); the watching units claim it.
pub(crate) fn expire(tx: &mut Transaction<'_>, name: &ApplicationName) {
    if tx.root.lease_holds(&tx.uuid, name, tx.env.lease_now_ms) {
        return;
    }
    let Some(application) = tx.state.application(name).cloned() else { return };
    if application.leader.is_some() && somebody_else_could_lead(tx.root, &tx.state, name, tx.now()) {
        tx.put(Application { leader: None, ..Application::clone(&application) });
        tx.set_lease(name, None);
    }
}
