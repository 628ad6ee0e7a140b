//! The charm: a method per event, and the dispatch of the host's call to it.

use crate::error::Ending;
use crate::{
    ActionEvent, CustomEvent, Error, Event, Failure, Invocation, Outcome, RelationBatch, RelationBroken,
    RelationChanged, RelationCreated, RelationDeparted, RelationJoined, Result, SecretEvent,
    SecretRevisionEvent, StorageEvent, Unit, WorkloadCheckEvent, WorkloadEvent, WorkloadNoticeEvent,
};

/// A charm: one method for each event that it handles.
///
/// The SDK creates a new charm for each hook. A method that is left out passes its event to
/// [`otherwise`](Self::otherwise), which reports the event as unhandled: a hook then counts as a success, an action
/// as a failure. Charms that reconcile their whole state at every event write `otherwise` alone.
pub trait Charm: Default {
    /// Handles the first event of a unit; once per unit.
    fn install(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Install)
    }

    /// Handles the start, after the first `config_changed` and after each reboot of the machine.
    fn start(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Start)
    }

    /// Handles the removal of the unit, after the end of its relations.
    fn stop(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Stop)
    }

    /// Handles the last event of a unit.
    fn remove(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::Remove)
    }

    /// Handles settings that may have changed; also before `start` and after `upgrade_charm`.
    fn config_changed(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::ConfigChanged)
    }

    /// Handles the first hook under another version of the charm.
    fn upgrade_charm(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::UpgradeCharm)
    }

    /// Handles the timer of update-status, for checks of the workload.
    fn update_status(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::UpdateStatus)
    }

    /// Handles that this unit leads its application now.
    fn leader_elected(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::LeaderElected)
    }

    /// Handles a change of the leader settings by the leader, another unit.
    fn leader_settings_changed(&mut self, unit: &Unit) -> Result {
        self.otherwise(unit, &Event::LeaderSettingsChanged)
    }

    /// Handles that this unit entered a relation.
    fn relation_created(&mut self, unit: &Unit, event: &RelationCreated) -> Result {
        self.otherwise(unit, &Event::RelationCreated(event.clone()))
    }

    /// Handles a remote unit that came into view; `relation_changed` follows.
    fn relation_joined(&mut self, unit: &Unit, event: &RelationJoined) -> Result {
        self.otherwise(unit, &Event::RelationJoined(event.clone()))
    }

    /// Handles a bag of the other side that may have changed.
    fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result {
        self.otherwise(unit, &Event::RelationChanged(event.clone()))
    }

    /// Handles a remote unit that went out of view.
    fn relation_departed(&mut self, unit: &Unit, event: &RelationDeparted) -> Result {
        self.otherwise(unit, &Event::RelationDeparted(event.clone()))
    }

    /// Handles the end of the relation for this unit.
    fn relation_broken(&mut self, unit: &Unit, event: &RelationBroken) -> Result {
        self.otherwise(unit, &Event::RelationBroken(event.clone()))
    }

    /// Handles a batch in place of joined, changed and departed, for endpoints with `batch: true` in the charm's
    /// metadata.
    fn relation_batch(&mut self, unit: &Unit, event: &RelationBatch) -> Result {
        self.otherwise(unit, &Event::RelationBatch(event.clone()))
    }

    /// Handles storage that is attached.
    fn storage_attached(&mut self, unit: &Unit, event: &StorageEvent) -> Result {
        self.otherwise(unit, &Event::StorageAttached(event.clone()))
    }

    /// Handles storage that is about to be detached.
    fn storage_detaching(&mut self, unit: &Unit, event: &StorageEvent) -> Result {
        self.otherwise(unit, &Event::StorageDetaching(event.clone()))
    }

    /// Handles a new revision of a secret that this unit reads.
    fn secret_changed(&mut self, unit: &Unit, event: &SecretEvent) -> Result {
        self.otherwise(unit, &Event::SecretChanged(event.clone()))
    }

    /// Handles a secret of this unit that is due for rotation.
    fn secret_rotate(&mut self, unit: &Unit, event: &SecretEvent) -> Result {
        self.otherwise(unit, &Event::SecretRotate(event.clone()))
    }

    /// Handles a revision of an owned secret that has expired.
    fn secret_expired(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        self.otherwise(unit, &Event::SecretExpired(event.clone()))
    }

    /// Handles a revision of an owned secret that no consumer tracks any more.
    fn secret_remove(&mut self, unit: &Unit, event: &SecretRevisionEvent) -> Result {
        self.otherwise(unit, &Event::SecretRemove(event.clone()))
    }

    /// Handles a workload container that is ready.
    fn pebble_ready(&mut self, unit: &Unit, event: &WorkloadEvent) -> Result {
        self.otherwise(unit, &Event::PebbleReady(event.clone()))
    }

    /// Handles a notice from a workload.
    fn pebble_custom_notice(&mut self, unit: &Unit, event: &WorkloadNoticeEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCustomNotice(event.clone()))
    }

    /// Handles a check of a workload that began to fail.
    fn pebble_check_failed(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCheckFailed(event.clone()))
    }

    /// Handles a check of a workload that passes again.
    fn pebble_check_recovered(&mut self, unit: &Unit, event: &WorkloadCheckEvent) -> Result {
        self.otherwise(unit, &Event::PebbleCheckRecovered(event.clone()))
    }

    /// Handles an action. `event.name` is its name, and the event gives access to its parameters and results. A charm
    /// passes an unknown action on to `otherwise`, which reports it.
    fn action(&mut self, unit: &Unit, event: &ActionEvent) -> Result {
        self.otherwise(unit, &Event::Action(event.clone()))
    }

    /// Handles a custom event.
    fn custom(&mut self, unit: &Unit, event: &CustomEvent) -> Result {
        self.otherwise(unit, &Event::Custom(event.clone()))
    }

    /// Handles every event without a method of its own.
    fn otherwise(&mut self, _unit: &Unit, _event: &Event) -> Result {
        Err(Error::unhandled())
    }
}

/// Runs a charm for one invocation. [`export!`](crate::export) makes this function the component's handler.
///
/// # Errors
///
/// When the charm's handler failed.
pub fn handle<C: Charm>(invocation: Invocation) -> std::result::Result<Outcome, Failure> {
    run::<C>(&invocation.event.into(), invocation.attempt)
}

/// Creates the charm, passes it one event, and returns the outcome.
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
        // Legacy events without methods of their own.
        Event::PreSeriesUpgrade(_)
        | Event::PostSeriesUpgrade(_)
        | Event::CollectMetrics
        | Event::MeterStatusChanged(_) => charm.otherwise(unit, event),
    }
}
