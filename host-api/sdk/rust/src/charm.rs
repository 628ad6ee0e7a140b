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
pub trait Charm: Default {
    /// First of all, once per unit.
    fn install(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Install)
    }

    /// After the first `config_changed`, and after each reboot of the machine.
    fn start(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Start)
    }

    /// The unit is being removed, and its relations are over.
    fn stop(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Stop)
    }

    /// Last of all.
    fn remove(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Remove)
    }

    /// The settings may have changed; also before `start` and after `upgrade_charm`.
    fn config_changed(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::ConfigChanged)
    }

    /// This is another version of the charm than the hook before ran.
    fn upgrade_charm(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::UpgradeCharm)
    }

    /// Now and then, to look after the workload.
    fn update_status(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::UpdateStatus)
    }

    /// This unit leads its application now.
    fn leader_elected(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::LeaderElected)
    }

    /// The leader, another unit, changed the leader settings.
    fn leader_settings_changed(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::LeaderSettingsChanged)
    }

    /// This unit entered a relation.
    fn relation_created(&mut self, unit: &Unit, event: &RelationCreated) -> Result {
        self.otherwise(unit, &Event::RelationCreated(event.clone()))
    }

    /// A remote unit came into view; `relation_changed` follows.
    fn relation_joined(&mut self, unit: &Unit, event: &RelationJoined) -> Result {
        self.otherwise(unit, &Event::RelationJoined(event.clone()))
    }

    /// A bag of the other side may have changed.
    fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result {
        self.otherwise(unit, &Event::RelationChanged(event.clone()))
    }

    /// A remote unit went out of view.
    fn relation_departed(&mut self, unit: &Unit, event: &RelationDeparted) -> Result {
        self.otherwise(unit, &Event::RelationDeparted(event.clone()))
    }

    /// The relation is over for this unit.
    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result {
        self.otherwise(unit, &Event::RelationBroken(event.clone()))
    }

    /// In place of joined, changed and departed, for endpoints with `batch: true` in the charm's metadata.
    fn relation_batch(&mut self, unit: &Unit, event: &RelationBatch) -> Result {
        self.otherwise(unit, &Event::RelationBatch(event.clone()))
    }

    /// Storage can be used.
    fn storage_attached(&mut self, unit: &Unit, event: &StorageEvent) -> Result {
        self.otherwise(unit, &Event::StorageAttached(event.clone()))
    }

    /// Storage is about to go.
    fn storage_detaching(&mut self, unit: &Unit, event: &StorageEvent) -> Result {
        self.otherwise(unit, &Event::StorageDetaching(event.clone()))
    }

    /// A secret that this unit reads has a new revision.
    fn secret_changed(&mut self, unit: &Unit, event: &SecretEvent) -> Result {
        self.otherwise(unit, &Event::SecretChanged(event.clone()))
    }

    /// A secret that this unit owns is due for rotation.
    fn secret_rotate(&mut self, unit: &Unit, event: &SecretEvent) -> Result {
        self.otherwise(unit, &Event::SecretRotate(event.clone()))
    }

    /// A revision of an own secret has expired.
    fn secret_expired(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        self.otherwise(unit, &Event::SecretExpired(event.clone()))
    }

    /// A revision of an own secret has no reader left.
    fn secret_remove(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        self.otherwise(unit, &Event::SecretRemove(event.clone()))
    }

    /// A workload's container answers.
    fn pebble_ready(&mut self, unit: &Unit, event: &WorkloadEvent) -> Result {
        self.otherwise(unit, &Event::PebbleReady(event.clone()))
    }

    /// A workload sent a notice.
    fn pebble_custom_notice(&mut self, unit: &Unit, event: &WorkloadNoticeEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCustomNotice(event.clone()))
    }

    /// A check of a workload began to fail.
    fn pebble_check_failed(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCheckFailed(event.clone()))
    }

    /// A check of a workload passes again.
    fn pebble_check_recovered(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCheckRecovered(event.clone()))
    }

    /// An operator runs an action: `event.name` says which, and the event is the way to its parameters and results.
    /// One that the charm does not know is passed on to `otherwise`, which says so.
    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        self.otherwise(unit, &Event::Action(event.clone()))
    }

    /// What somebody sent by a name of their own.
    fn custom(&mut self, unit: &Unit, event: &CustomEvent) -> Result {
        self.otherwise(unit, &Event::Custom(event.clone()))
    }

    /// Gets every event that has no method of its own.
    fn otherwise(&mut self, _unit: &Unit, _event: &Event) -> Result {
        Err(Error::unhandled())
    }
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
