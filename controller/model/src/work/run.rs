//! The execution of one step of a work item.

use std::sync::Arc;

use periapt_host_api::{ApplicationName, UnitName, status::Life, storage::UnitStorage};

use crate::{
    action, application,
    entity::{ModelKey, Unit, Work, WorkId},
    machine, model, offer, relation,
    root::ModelState,
    secret,
    storage::{self, takeover::NewUnitPlacement},
    transaction::Transaction,
    unit::{self, command::create_step},
};

/// Does the next step of a due work item. The item is deleted when nothing is left of it; a step may put the rest
/// into a new item.
pub(crate) fn run(tx: &mut Transaction<'_>, id: WorkId) {
    let Some(item) = tx.state.work_item(&id).cloned() else { return };
    if item.due.is_some_and(|due| due > tx.now()) {
        return;
    }
    let done = match &item.work {
        Work::CreateUnits { application, next, end, placement } => {
            let alive =
                tx.state.application(application).is_some_and(|application| application.life == Life::Alive);
            if alive {
                // A refusal means that all numbers are used up; then nothing is left to do.
                let _ = create_step(tx, application, *next, *end, &NewUnitPlacement::at(placement));
            }
            true
        }
        Work::DestroyApplication { application, force, storage, after } => {
            application::life::destroy_step(tx, application, *force, *storage, after.clone())
        }
        Work::DestroyUnitsOn { machine, force, after } => {
            machine::life::destroy_units_on(tx, *machine, *force, after.clone());
            true
        }
        Work::DestroyUnits { units, force, storage } => {
            unit::life::destroy_all(tx, units.clone(), *force, *storage);
            true
        }
        Work::DestroySubordinates { application } => {
            // Units that are being destroyed no longer count.
            let next = |state: &ModelState, after: Option<&UnitName>| {
                orphans(state, application, after).next().cloned()
            };
            unit::life::destroy_each(tx, None, None, UnitStorage::Detach, next).is_none()
        }
        Work::UnitScopes { unit } => unit::life::scopes_step(tx, unit),
        Work::CancelTasks { unit } => action::due::cancel_all(tx, unit),
        Work::ForceUnit { unit } => unit::life::force_step(tx, unit),
        Work::ForceRelation { relation } => relation::life::force_step(tx, relation),
        Work::DestroyRelations { relations, force } => {
            offer::life::destroy_relations_step(tx, relations, *force);
            true
        }
        Work::ForceStorage { storage, detachment } => {
            storage::life::force_step(tx, storage, *detachment);
            true
        }
        Work::ProvideStorage { application } => match tx.state.application(application).cloned() {
            Some(application) => storage::life::provide_step(tx, &application).unwrap_or(true),
            None => true,
        },
        Work::ForceModel => model::cleanup::force_step(tx),
        Work::RemoveSecrets { secrets } => {
            secret::life::remove_step(tx, secrets);
            true
        }
        Work::PruneSecrets { secrets } => {
            // The end of the commit deletes them, and adds a work item for the rest.
            secrets.iter().for_each(|id| tx.note_garbage(*id));
            true
        }
        Work::ForgetSecretReader { reader, secrets } => secret::life::forget_step(tx, reader, secrets),
        Work::RemoveBags { relation } => relation::life::remove_bags(tx, relation),
    };
    if done {
        tx.delete(ModelKey::Work(id));
    }
}

/// Returns the subordinate units after one of them that no alive container relation ties to their principal.
fn orphans<'a>(
    state: &'a ModelState,
    application: &'a ApplicationName,
    after: Option<&UnitName>,
) -> impl Iterator<Item = &'a Arc<Unit>> {
    let tied_to = |principal: &ApplicationName| {
        state.relations_of(application).any(|relation| {
            relation.life == Life::Alive
                && relation.scope == periapt_host_api::relation::Scope::Container
                && relation.other_end(application).is_some_and(|end| end.application == *principal)
        })
    };
    state.units_of_behind(application, after).filter(|unit| unit.life == Life::Alive).filter(move |unit| {
        unit.principal.as_ref().is_some_and(|principal| !tied_to(principal.application()))
    })
}
