//! The view that answers a hook's reads, with quick access to the entries of its own unit.

use periapt_host_api::{
    Digest, UnitName,
    charm::CharmMeta,
    view::{ApplicationView, MachineView, ModelView, UnitView, View},
};

/// A view that lacks an entry that every hook needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// An entry is missing.
    #[error("the snapshot lacks {what} of unit {unit}")]
    Missing {
        /// The hook's unit.
        unit: UnitName,
        /// `the model`, `the charm`, ...
        what: &'static str,
    },
    /// The context's id is not 32 hex digits.
    #[error("the context id must be 32 lower-case hex digits")]
    ContextId,
}

/// One unit's snapshot; it never changes.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) view: View,
    pub(crate) unit: UnitName,
    charm: Digest,
}

impl Snapshot {
    pub(crate) fn new(view: View, unit: UnitName) -> Result<Self, ContextError> {
        let missing = |what| ContextError::Missing { unit: unit.clone(), what };
        let own = view.units.get(&unit).ok_or_else(|| missing("the entry"))?;
        let application =
            view.applications.get(unit.application()).ok_or_else(|| missing("the application"))?;
        // A unit runs the charm that it last installed, which may be older than its application's.
        let charm = own.record.charm.unwrap_or(application.charm).digest;
        view.charms.get(&charm).ok_or_else(|| missing("the charm"))?;
        view.machines.get(&own.machine).ok_or_else(|| missing("the machine"))?;
        view.model.as_ref().ok_or_else(|| missing("the model"))?;
        Ok(Self { view, unit, charm })
    }

    pub(crate) fn model(&self) -> &ModelView {
        present(self.view.model.as_ref())
    }

    pub(crate) fn own(&self) -> &UnitView {
        present(self.view.units.get(&self.unit))
    }

    pub(crate) fn application(&self) -> &ApplicationView {
        present(self.view.applications.get(self.unit.application()))
    }

    pub(crate) fn meta(&self) -> &CharmMeta {
        &present(self.view.charms.get(&self.charm)).meta
    }

    pub(crate) fn machine(&self) -> &MachineView {
        present(self.view.machines.get(&self.own().machine))
    }

    /// Returns true if the snapshot has this unit as leader.
    pub(crate) fn leads(&self) -> bool {
        self.application().leader.as_ref().is_some_and(|leader| leader.unit == self.unit)
    }

    /// Returns true if the snapshot has another unit as leader.
    pub(crate) fn led_by_another(&self) -> bool {
        self.application().leader.as_ref().is_some_and(|leader| leader.unit != self.unit)
    }
}

#[expect(clippy::expect_used, reason = "`Snapshot::new` looked each of them up, and a view is a value")]
fn present<T>(entry: Option<&T>) -> &T {
    entry.expect("looked up when the snapshot was taken")
}
