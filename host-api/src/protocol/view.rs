//! What a runner may see of the model, as a value: the mirror that hooks read and the resolver resolves from.
//!
//! A view is sent as [`Frame`]s, each in one [`FrameLine`] or, if it is large, in several. Property: any frames, applied in order, give the view of the revision that the
//! last one is complete to.

use imbl::OrdMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, MachineId, RelationId, Revision, StorageId, StoreId, TaskId, UnitName,
    budget::BudgetSettings, relation::BagKey, secret::SecretId, state::StateKey,
};

mod entity;
mod line;
mod secret;

pub use entity::*;
pub use line::*;
pub use secret::*;

/// One caller's view of one model at one revision. Cloning is cheap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// Complete up to here.
    pub revision: Revision,
    /// The model; none before the first frame, and after the model is gone.
    pub model: Option<ModelView>,
    /// The units' own applications.
    pub applications: OrdMap<ApplicationName, ApplicationView>,
    /// The charms of these applications, and those that units still run.
    pub charms: OrdMap<Digest, CharmView>,
    /// The runner's own units.
    pub units: OrdMap<UnitName, UnitView>,
    /// Units of own and related applications, in outline.
    pub outlines: OrdMap<UnitName, UnitOutline>,
    /// Relations of these applications.
    pub relations: OrdMap<RelationId, RelationView>,
    /// Bags that at least one of the units may read.
    pub bags: OrdMap<BagKey, BagView>,
    /// What the charms of the runner's own units stored.
    pub states: OrdMap<StateKey, StateView>,
    /// Events that the own units wait for.
    pub events: OrdMap<UnitName, EventsView>,
    /// Secrets that at least one of the units owns, reads, or has read; never their content.
    pub secrets: OrdMap<SecretId, SecretView>,
    /// The machines of these units.
    pub machines: OrdMap<MachineId, MachineView>,
    /// Tasks of the own units that have not ended.
    pub tasks: OrdMap<TaskId, TaskView>,
    /// Storage of these units, and other storage on the agent's disk.
    pub storages: OrdMap<StorageId, StorageView>,
}

impl View {
    /// What hooks of an application may use: its own settings, and for the rest the model's.
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

        /// One entry of a view; it carries its key.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[expect(clippy::large_enum_variant, reason = "units are the largest, and what most frames carry")]
        pub enum ViewEntity {
            /// The model itself.
            Model(ModelView),
            $($(#[$doc])* $variant($value),)*
        }

        impl ViewEntity {
            /// Where it stands in its view.
            pub fn key(&self) -> ViewKey {
                match self {
                    Self::Model(_) => ViewKey::Model,
                    $(Self::$variant(value) => ViewKey::$variant(($by)(value)),)*
                }
            }
        }

        impl View {
            /// Puts one entry in its place.
            pub fn put(&mut self, entity: ViewEntity) {
                match entity {
                    ViewEntity::Model(value) => self.model = Some(value),
                    $(ViewEntity::$variant(value) => {
                        self.$map.insert(($by)(&value), value);
                    })*
                }
            }

            /// Takes one entry out.
            pub fn delete(&mut self, key: &ViewKey) {
                match key {
                    ViewKey::Model => self.model = None,
                    $(ViewKey::$variant(key) => {
                        self.$map.remove(key);
                    })*
                }
            }

            /// How many entries it has.
            pub fn entries(&self) -> usize {
                usize::from(self.model.is_some()) $(+ self.$map.len())*
            }

            /// What must be put and deleted to turn `self` into `newer`. Shared parts are passed over unseen.
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
    /// An own unit.
    Unit(UnitName => UnitView) in units by |value: &UnitView| value.name.clone(),
    /// Any unit in outline.
    Outline(UnitName => UnitOutline) in outlines by |value: &UnitOutline| value.name.clone(),
    /// A relation.
    Relation(RelationId => RelationView) in relations by |value: &RelationView| value.id,
    /// A bag.
    Bag(BagKey => BagView) in bags by |value: &BagView| value.key.clone(),
    /// A key of an own unit's state.
    State(StateKey => StateView) in states by |value: &StateView| value.key.clone(),
    /// Events that a unit waits for.
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

/// One step of a watch: turns the view at `from` into the view at `to`. Applied whole or not at all.
/// One without puts and deletes is the heartbeat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Frame {
    /// The store whose revisions these are.
    pub store: StoreId,
    /// The view that it starts from; none: from nothing, whatever the receiver had (a full replacement).
    pub from: Option<Revision>,
    /// The revision up to which the result is complete.
    pub to: Revision,
    /// Entries that are new or differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<ViewEntity>,
    /// Entries that are there no more, or may be seen no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletes: Vec<ViewKey>,
}

/// A frame that does not start where the view is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame from revision {from} does not apply to a view of revision {have}")]
pub struct FrameGap {
    /// Where the frame starts.
    pub from: Revision,
    /// Where the view is.
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

    /// The frame that turns `self` into `newer`.
    pub fn frame_to(&self, newer: &Self, store: StoreId) -> Frame {
        let (puts, deletes) = self.difference(newer);
        Frame { store, from: Some(self.revision), to: newer.revision, puts, deletes }
    }

    /// The frame that gives this view to somebody who has nothing.
    pub fn full_frame(&self, store: StoreId) -> Frame {
        let (puts, _) = Self::default().difference(self);
        Frame { store, from: None, to: self.revision, puts, deletes: Vec::new() }
    }
}
