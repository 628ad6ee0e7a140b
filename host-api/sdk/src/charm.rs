//! The charm itself: a method per event, and the way from the host's call to it.

use crate::error::Ending;
use crate::{
    ActionEvent, CustomEvent, Error, Event, Failure, Invocation, Outcome, RelationBatch, RelationBroken,
    RelationChanged, RelationCreated, RelationDeparted, RelationJoined, Result, SecretEvent,
    SecretRevisionEvent, StorageEvent, Unit, WorkloadCheckEvent, WorkloadEvent, WorkloadNoticeEvent,
};

/// A charm: one method for each event that it handles.
///
/// It is made anew for each hook. A method that is left out passes its event to [`otherwise`](Self::otherwise), which
/// reports it as unhandled: a hook then counts as a success, an action as a failure. Charms that look at the whole
/// picture at every event write `otherwise` alone.
#[allow(
    unused_variables,
    missing_docs,
    reason = "the defaults are one for all, and the methods are named after their events"
)]
#[rustfmt::skip]
pub trait Charm: Default {
    fn install(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::Install) }
    fn start(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::Start) }
    fn stop(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::Stop) }
    fn remove(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::Remove) }
    fn config_changed(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::ConfigChanged) }
    fn upgrade_charm(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::UpgradeCharm) }
    fn update_status(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::UpdateStatus) }
    fn leader_elected(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::LeaderElected) }
    fn leader_settings_changed(&mut self, unit: &Unit) -> Result { self.otherwise(unit, &Event::LeaderSettingsChanged) }
    fn relation_created(&mut self, unit: &Unit, event: &RelationCreated) -> Result { self.otherwise(unit, &Event::RelationCreated(event.clone())) }
    fn relation_joined(&mut self, unit: &Unit, event: &RelationJoined) -> Result { self.otherwise(unit, &Event::RelationJoined(event.clone())) }
    fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result { self.otherwise(unit, &Event::RelationChanged(event.clone())) }
    fn relation_departed(&mut self, unit: &Unit, event: &RelationDeparted) -> Result { self.otherwise(unit, &Event::RelationDeparted(event.clone())) }
    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result { self.otherwise(unit, &Event::RelationBroken(event.clone())) }
    fn relation_batch(&mut self, unit: &Unit, event: &RelationBatch) -> Result { self.otherwise(unit, &Event::RelationBatch(event.clone())) }
    fn storage_attached(&mut self, unit: &Unit, event: &StorageEvent) -> Result { self.otherwise(unit, &Event::StorageAttached(event.clone())) }
    fn storage_detaching(&mut self, unit: &Unit, event: &StorageEvent) -> Result { self.otherwise(unit, &Event::StorageDetaching(event.clone())) }
    fn secret_changed(&mut self, unit: &Unit, event: &SecretEvent) -> Result { self.otherwise(unit, &Event::SecretChanged(event.clone())) }
    fn secret_rotate(&mut self, unit: &Unit, event: &SecretEvent) -> Result { self.otherwise(unit, &Event::SecretRotate(event.clone())) }
    fn secret_expired(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result { self.otherwise(unit, &Event::SecretExpired(event.clone())) }
    fn secret_remove(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result { self.otherwise(unit, &Event::SecretRemove(event.clone())) }
    fn pebble_ready(&mut self, unit: &Unit, event: &WorkloadEvent) -> Result { self.otherwise(unit, &Event::PebbleReady(event.clone())) }
    fn pebble_custom_notice(&mut self, unit: &Unit, event: &WorkloadNoticeEvent) -> Result { self.otherwise(unit, &Event::PebbleCustomNotice(event.clone())) }
    fn pebble_check_failed(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result { self.otherwise(unit, &Event::PebbleCheckFailed(event.clone())) }
    fn pebble_check_recovered(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result { self.otherwise(unit, &Event::PebbleCheckRecovered(event.clone())) }
    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result { self.otherwise(unit, &Event::Action(event.clone())) }
    fn custom(&mut self, unit: &Unit, event: &CustomEvent) -> Result { self.otherwise(unit, &Event::Custom(event.clone())) }

    /// Gets every event that has no method of its own.
    fn otherwise(&mut self, unit: &Unit, event: &Event) -> Result { Err(Error::unhandled()) }
}

/// Runs a charm for one invocation; what [`export!`](crate::export) makes the component's handler.
///
/// # Errors
///
/// When the charm's handler failed.
pub fn handle<C: Charm>(invocation: Invocation) -> std::result::Result<Outcome, Failure> {
    run::<C>(&invocation.event.into(), invocation.attempt)
}

/// Makes the charm, gives it one event, and says how that ended.
pub(crate) fn run<C: Charm>(event: &Event, attempt: u32) -> std::result::Result<Outcome, Failure> {
    let unit = Unit::new(attempt);
    let ended = dispatch(&mut C::default(), &unit, event);
    match ended.map_err(Error::into_ending) {
        Ok(()) => Ok(Outcome::Handled),
        Err(Ending::Unhandled) => Ok(Outcome::Unhandled),
        Err(Ending::Stopped(status)) => match unit.set_status(&status) {
            Ok(()) => Ok(Outcome::Handled),
            Err(error) => Err(Failure { code: 1, message: error.to_string() }),
        },
        Err(Ending::Failed(failure)) => Err(failure),
    }
}

fn dispatch(charm: &mut impl Charm, unit: &Unit, event: &Event) -> Result {
    match event {
        Event::Install => charm.install(unit),
        Event::Start => charm.start(unit),
        Event::Stop => charm.stop(unit),
        Event::Remove => charm.remove(unit),
        Event::ConfigChanged => charm.config_changed(unit),
        Event::UpgradeCharm => charm.upgrade_charm(unit),
        Event::UpdateStatus => charm.update_status(unit),
        Event::LeaderElected => charm.leader_elected(unit),
        Event::LeaderSettingsChanged => charm.leader_settings_changed(unit),
        Event::RelationCreated(event) => charm.relation_created(unit, event),
        Event::RelationJoined(event) => charm.relation_joined(unit, event),
        Event::RelationChanged(event) => charm.relation_changed(unit, event),
        Event::RelationDeparted(event) => charm.relation_departed(unit, event),
        Event::RelationBroken(event) => charm.relation_broken(unit, event),
        Event::RelationBatch(event) => charm.relation_batch(unit, event),
        Event::StorageAttached(event) => charm.storage_attached(unit, event),
        Event::StorageDetaching(event) => charm.storage_detaching(unit, event),
        Event::SecretChanged(event) => charm.secret_changed(unit, event),
        Event::SecretRotate(event) => charm.secret_rotate(unit, event),
        Event::SecretExpired(event) => charm.secret_expired(unit, event),
        Event::SecretRemove(event) => charm.secret_remove(unit, event),
        Event::PebbleReady(event) => charm.pebble_ready(unit, event),
        Event::PebbleCustomNotice(event) => charm.pebble_custom_notice(unit, event),
        Event::PebbleCheckFailed(event) => charm.pebble_check_failed(unit, event),
        Event::PebbleCheckRecovered(event) => charm.pebble_check_recovered(unit, event),
        Event::Action(event) => charm.action(unit, event),
        Event::Custom(event) => charm.custom(unit, event),
        // Legacy events, which have no method of their own.
        Event::PreSeriesUpgrade(_)
        | Event::PostSeriesUpgrade(_)
        | Event::CollectMetrics
        | Event::MeterStatusChanged(_) => charm.otherwise(unit, event),
    }
}
