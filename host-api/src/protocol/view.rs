//! A runner's view of a model, as a value: hooks read it and the resolver resolves from it.
//!
//! The controller sends a view as [`Frame`]s, each in one [`FrameLine`] or, if it is large, in several. Property: any
//! frames, applied in order, give the view at the revision of the last frame.

use imbl::OrdMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, MachineId, RelationId, Revision, StorageId, StoreId, TaskId, UnitName,
    budget::BudgetSettings, relation::BagKey, secret::SecretId, state::StateKey, trace::RevisionTrace,
};

mod bags;
mod entity;
mod line;
mod secret;

pub use bags::Bags;
pub use entity::*;
pub use line::*;
pub use secret::*;

/// One caller's view of one model at one revision. Cloning is cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The revision up to which the view is complete.
    pub revision: Revision,
    /// The model; none before the first frame, and after the model's removal.
    pub model: Option<ModelView>,
    /// The applications of the runner's units.
    pub applications: OrdMap<ApplicationName, ApplicationView>,
    /// The charms of these applications, and other charms that the runner's units still run.
    pub charms: OrdMap<Digest, CharmView>,
    /// The runner's own units.
    pub units: OrdMap<UnitName, UnitView>,
    /// Outlines of the units of these applications and of related ones.
    pub outlines: OrdMap<UnitName, UnitOutline>,
    /// The relations of these applications.
    pub relations: OrdMap<RelationId, RelationView>,
    /// The bags that at least one of the runner's units may read.
    pub bags: Bags,
    /// The state that the charms of the runner's units stored.
    pub states: OrdMap<StateKey, StateView>,
    /// The pending events of the runner's units.
    pub events: OrdMap<UnitName, EventsView>,
    /// The secrets that at least one of the runner's units owns, reads or has read, without their content.
    pub secrets: OrdMap<SecretId, SecretView>,
    /// The machines of the runner's units.
    pub machines: OrdMap<MachineId, MachineView>,
    /// The tasks of the runner's units that have not ended.
    pub tasks: OrdMap<TaskId, TaskView>,
    /// The storage of the runner's units, and other storage on the agent's disk.
    pub storages: OrdMap<StorageId, StorageView>,
}

impl View {
    /// Returns the budgets of an application's hooks: the application's own, and the model's for the rest.
    pub fn budgets(&self, application: &ApplicationName) -> BudgetSettings {
        let model = self.model.as_ref().map(|model| model.config.budgets.clone()).unwrap_or_default();
        match self.applications.get(application) {
            Some(application) => application.budgets.or(&model),
            None => model,
        }
    }
}

macro_rules! entities {
    ($($(#[$doc:meta])* $variant:ident($key:ty => $value:ty) in $map:ident by $by:expr),* $(,)?) => {
        /// The key of one entry of a view.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum ViewKey {
            /// The model itself.
            Model,
            $($(#[$doc])* $variant($key),)*
        }

        /// One entry of a view, which includes its key.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[expect(clippy::large_enum_variant, reason = "units are the largest, and what most frames carry")]
        pub enum ViewEntity {
            /// The model itself.
            Model(ModelView),
            $($(#[$doc])* $variant($value),)*
        }

        impl ViewEntity {
            /// Returns the entry's key.
            pub fn key(&self) -> ViewKey {
                match self {
                    Self::Model(_) => ViewKey::Model,
                    $(Self::$variant(value) => ViewKey::$variant(($by)(value)),)*
                }
            }
        }

        impl View {
            /// Adds or replaces one entry.
            pub fn put(&mut self, entity: ViewEntity) {
                match entity {
                    ViewEntity::Model(value) => self.model = Some(value),
                    $(ViewEntity::$variant(value) => {
                        self.$map.insert(($by)(&value), value);
                    })*
                }
            }

            /// Removes one entry.
            pub fn delete(&mut self, key: &ViewKey) {
                match key {
                    ViewKey::Model => self.model = None,
                    // A removal copies what the map shares with others, even if the key is not there.
                    $(ViewKey::$variant(key) => {
                        if self.$map.contains_key(key) {
                            self.$map.remove(key);
                        }
                    })*
                }
            }

            /// Returns the number of entries.
            pub fn entries(&self) -> usize {
                usize::from(self.model.is_some()) $(+ self.$map.len())*
            }

            /// Returns the entries to put and the keys to delete that turn `self` into `newer`. Shared parts of the
            /// maps are skipped.
            pub fn difference(&self, newer: &Self) -> (Vec<ViewEntity>, Vec<ViewKey>) {
                let (mut puts, mut deletes) = (Vec::new(), Vec::new());
                if self.model != newer.model {
                    match &newer.model {
                        Some(model) => puts.push(ViewEntity::Model(model.clone())),
                        None => deletes.push(ViewKey::Model),
                    }
                }
                $(for item in self.$map.diff(&newer.$map) {
                    match item {
                        imbl::ordmap::DiffItem::Add(_, value)
                        | imbl::ordmap::DiffItem::Update { new: (_, value), .. } => {
                            puts.push(ViewEntity::$variant(value.clone()));
                        }
                        imbl::ordmap::DiffItem::Remove(key, _) => deletes.push(ViewKey::$variant(key.clone())),
                    }
                })*
                (puts, deletes)
            }
        }
    };
}

entities! {
    /// An application.
    Application(ApplicationName => ApplicationView) in applications by |value: &ApplicationView| value.name.clone(),
    /// A charm.
    Charm(Digest => CharmView) in charms by |value: &CharmView| value.digest,
    /// A unit of the runner.
    Unit(UnitName => UnitView) in units by |value: &UnitView| value.name.clone(),
    /// The outline of a unit.
    Outline(UnitName => UnitOutline) in outlines by |value: &UnitOutline| value.name.clone(),
    /// A relation.
    Relation(RelationId => RelationView) in relations by |value: &RelationView| value.id,
    /// A bag.
    Bag(BagKey => BagView) in bags by |value: &BagView| value.key.clone(),
    /// A key of the state of one of the runner's units.
    State(StateKey => StateView) in states by |value: &StateView| value.key.clone(),
    /// The pending events of a unit.
    Events(UnitName => EventsView) in events by |value: &EventsView| value.unit.clone(),
    /// A secret.
    Secret(SecretId => SecretView) in secrets by |value: &SecretView| value.id,
    /// A machine.
    Machine(MachineId => MachineView) in machines by |value: &MachineView| value.id,
    /// A task.
    Task(TaskId => TaskView) in tasks by |value: &TaskView| value.id,
    /// Storage.
    Storage(StorageId => StorageView) in storages by |value: &StorageView| value.id.clone(),
}

/// One step of a watch, which turns the view at `from` into the view at `to`. A receiver applies it whole or not at
/// all. A frame without puts and deletes is the heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Frame {
    /// The store that the revisions belong to.
    pub store: StoreId,
    /// The revision of the view that the frame starts from; none means an empty view (a full replacement).
    pub from: Option<Revision>,
    /// The revision up to which the resulting view is complete.
    pub to: Revision,
    /// The entries that are new or differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<ViewEntity>,
    /// The keys of the entries that are gone or no longer visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletes: Vec<ViewKey>,
    /// The commands that its revisions come from, where they were traced: the newest, at most
    /// [`MAX_FRAME_TRACES`](crate::trace::MAX_FRAME_TRACES).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<RevisionTrace>,
}

/// The error for a frame that does not start at the view's revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame from revision {from} does not apply to a view of revision {have}")]
pub struct FrameGap {
    /// The revision at which the frame starts.
    pub from: Revision,
    /// The view's revision.
    pub have: Revision,
}

impl View {
    /// Applies a frame, whole or not at all.
    pub fn apply(&mut self, frame: Frame) -> Result<(), FrameGap> {
        match frame.from {
            None => *self = Self::default(),
            Some(from) if from != self.revision => return Err(FrameGap { from, have: self.revision }),
            Some(_) => {}
        }
        for key in &frame.deletes {
            self.delete(key);
        }
        for entity in frame.puts {
            self.put(entity);
        }
        self.revision = frame.to;
        Ok(())
    }

    /// Returns the frame that turns `self` into `newer`.
    pub fn frame_to(&self, newer: &Self, store: StoreId) -> Frame {
        let (puts, deletes) = self.difference(newer);
        Frame { store, from: Some(self.revision), to: newer.revision, puts, deletes, traces: Vec::new() }
    }

    /// Returns the frame that gives this view to a receiver without one.
    pub fn full_frame(&self, store: StoreId) -> Frame {
        let (puts, _) = Self::default().difference(self);
        Frame { store, from: None, to: self.revision, puts, deletes: Vec::new(), traces: Vec::new() }
    }
}
