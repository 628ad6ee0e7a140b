//! Claiming and renewing leadership (`docs/hook-model.md` 7.4, `docs/design/leases.md`).

use periapt_host_api::{
    LeaderTerm, Refusal, RelationId,
    agent::{LeaseClaim, RunnerAnswer},
    status::Life,
    timing::{LEASE_AFTER_RESTART_MS, LEASE_SECONDS, LONGEST_LEASE_SECONDS, SHORTEST_LEASE_SECONDS},
    view::Leader,
};

use crate::{
    access::check::denied,
    entity::{Application, Unit},
    relation,
    transaction::Transaction,
};

/// The milliseconds for which the controller keeps a lease, for each second that its holder counts on it: as much more as
/// after a restart, because the clocks of two hosts do not go at the same rate.
const KEPT_MS_PER_SECOND: u64 = LEASE_AFTER_RESTART_MS / LEASE_SECONDS as u64;

pub(crate) fn claim(
    tx: &mut Transaction<'_>,
    unit: &Unit,
    claim: &LeaseClaim,
) -> Result<RunnerAnswer, Refusal> {
    let name = unit.name.application();
    if claim.application != *name {
        // D-2
        return Err(denied());
    }
    if !(SHORTEST_LEASE_SECONDS..=LONGEST_LEASE_SECONDS).contains(&claim.seconds) {
        return Err(Refusal::bad_request(format!(
            "a lease of {} s was asked for, {SHORTEST_LEASE_SECONDS} s to {LONGEST_LEASE_SECONDS} s are allowed",
            claim.seconds
        ))
        .about(format!("unit {}", unit.name)));
    }
    let application = tx.application(name)?;
    if let Some(leader) = application.leader.as_ref().filter(|leader| leader.unit == unit.name) {
        // A dying leader may renew: it leads until it is removed (L-4).
        renew(tx, &application, claim.seconds);
        return Ok(RunnerAnswer::Granted { term: leader.term, seconds: claim.seconds });
    }
    if let Some(leader) = &application.leader
        && tx.root.lease_holds(&tx.uuid, name, tx.env.lease_now_ms)
    {
        return Ok(RunnerAnswer::Held { holder: leader.unit.clone() });
    }
    if unit.life != Life::Alive {
        // U-41
        let text = format!("unit {:?} is not alive and cannot lead", unit.name);
        return Err(Refusal::not_alive(text).about(format!("unit {}", unit.name)));
    }
    let term = LeaderTerm(application.last_term.0.saturating_add(1));
    let leader = Some(Leader { unit: unit.name.clone(), term });
    tx.put(Application { leader, last_term: term, ..Application::clone(&application) });
    renew(tx, &application, claim.seconds);
    note_scopes(tx, unit);
    Ok(RunnerAnswer::Granted { term, seconds: claim.seconds })
}

/// Extends a lease, and never shortens it. A renewal is neither stored nor shown to watchers.
fn renew(tx: &mut Transaction<'_>, application: &Application, seconds: u32) {
    let kept_ms = u64::from(seconds).saturating_mul(KEPT_MS_PER_SECOND);
    let asked = tx.env.lease_now_ms.saturating_add(kept_ms);
    let present = application.leader.as_ref().and_then(|_| tx.root.lease(&tx.uuid, &application.name));
    // The expired lease of another holder ends in the past, so the later of both is always this claim's.
    let expires = present.map_or(asked, |present| present.max(asked));
    tx.set_lease(&application.name, Some(expires));
}

/// Sets the relations that the new leader is in to joined, while the commit has room.
fn note_scopes(tx: &mut Transaction<'_>, unit: &Unit) {
    let scopes: Vec<RelationId> = tx.state.scopes_of(&unit.name).take(60).copied().collect();
    for id in scopes {
        if let Some(relation) = tx.state.relation(&id).cloned() {
            relation::scope::note_leader(tx, unit, &relation);
        }
    }
}
