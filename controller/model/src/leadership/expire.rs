//! Expired leases: a unit that did not renew loses leadership once another unit could take it.

use periapt_host_api::{ApplicationName, status::Life};

use crate::{
    entity::Application,
    root::{ModelState, Root},
    transaction::Transaction,
};

/// Returns true if a unit other than the leader could claim. Otherwise a leader that was away for a while keeps its
/// leadership: its charm would only lose it and get it back.
pub(crate) fn another_unit_could_lead(
    root: &Root,
    state: &ModelState,
    application: &ApplicationName,
    lease_now_ms: u64,
) -> bool {
    let holder = state.application(application).and_then(|application| application.leader.as_ref());
    let Some(holder) = holder else { return false };
    state.units_of(application).any(|unit| {
        unit.name != holder.unit
            && unit.life == Life::Alive
            && state.agent_of(unit).is_some_and(|agent| root.is_alive(agent, lease_now_ms))
    })
}

/// Takes leadership from a unit whose lease expired (D-3). The other units see it and claim.
pub(crate) fn expire(tx: &mut Transaction<'_>, name: &ApplicationName) {
    if tx.root.lease_holds(&tx.uuid, name, tx.env.lease_now_ms) {
        return;
    }
    let Some(application) = tx.state.application(name).cloned() else { return };
    if application.leader.is_some() && another_unit_could_lead(tx.root, &tx.state, name, tx.env.lease_now_ms)
    {
        tx.put(Application { leader: None, ..Application::clone(&application) });
        tx.set_lease(name, None);
    }
}
