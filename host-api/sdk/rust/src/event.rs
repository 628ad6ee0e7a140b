//! The events of a unit, with handles in place of numbers.

use crate::bindings::periapt::charm::types as wit;
use crate::{
    ActionEvent, Bag, CustomEvent, MeterStatusEvent, Relation, SecretEvent, SecretRevisionEvent,
    SeriesUpgradeEvent, StorageEvent, WorkloadCheckEvent, WorkloadEvent, WorkloadNoticeEvent,
};

/// This unit entered a relation's scope; no other unit is in view yet.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationCreated {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
}

/// A remote unit came into view.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationJoined {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
    /// The unit that joined.
    pub unit: String,
}

/// A bag changed.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationChanged {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
    /// The unit whose bag changed. `None` means the application's bag.
    pub unit: Option<String>,
}

/// A remote unit went out of view.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationDeparted {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
    /// The unit that went out of view.
    pub unit: String,
    /// The unit that leaves: the remote unit, or this unit itself.
    pub departing: String,
}

/// The relation is over for this unit; its bags can still be read.
#[derive(Clone, Debug, PartialEq)]
pub struct RelationBroken {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
}

/// All changes in a relation since its last hook, for endpoints that ask for batches in the charm's metadata (`log:
/// {interface: syslog, batch: true}`), in place of joined, changed and departed. The three lists are disjoint.
/// Together they name at most 256 units, and the next hook names the rest. No changed event follows a joined unit:
/// its bag is readable at once.
///
/// ```
/// # use periapt_sdk::{Charm, RelationBatch, Result, Unit, testing::{Batch, Harness}};
/// # #[derive(Default)] struct Collector;
/// impl Charm for Collector {
///     fn relation_batch(&mut self, unit: &Unit, event: &RelationBatch) -> Result {
///         for member in event.present() {
///             let address: Option<String> = event.relation.member_bag(member).get("ingress-address")?;
///             unit.state().set(member, address.unwrap_or_default())?;
///         }
///         event.departed.iter().try_for_each(|member| unit.state().delete(member))
///     }
/// }
///
/// let mut unit = Harness::<Collector>::new("collector/0");
/// let log = unit.relate("log", "web");
/// let batch = Batch::new().join("web/0", &[("ingress-address", "10.0.0.7")]).join("web/1", &[]);
/// unit.batch(&log, batch).unwrap();
/// unit.batch(&log, Batch::new().depart("web/1")).unwrap();
/// assert_eq!(unit.stored()["web/0"], "10.0.0.7");
/// assert_eq!(unit.stored().len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RelationBatch {
    /// The relation.
    pub relation: Relation,
    /// The application at the other end.
    pub app: String,
    /// True if the remote application's bag changed.
    pub app_changed: bool,
    /// Units that came into view.
    pub joined: Vec<String>,
    /// Units whose bag changed.
    pub changed: Vec<String>,
    /// Units that went out of view.
    pub departed: Vec<String>,
}

impl RelationBatch {
    /// Returns the units whose bags are new or changed: those that joined, then those that changed.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.joined.iter().chain(&self.changed).map(String::as_str)
    }
}

impl RelationChanged {
    /// Returns the bag that changed.
    pub fn bag(&self) -> Bag {
        match &self.unit {
            Some(unit) => self.relation.member_bag(unit),
            None => Bag::of_application(&self.relation, &self.app),
        }
    }
}

/// Any event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each case is named after the handler that gets it")]
pub enum Event {
    Install,
    Start,
    Stop,
    Remove,
    ConfigChanged,
    UpgradeCharm,
    UpdateStatus,
    LeaderElected,
    LeaderSettingsChanged,
    RelationCreated(RelationCreated),
    RelationJoined(RelationJoined),
    RelationChanged(RelationChanged),
    RelationDeparted(RelationDeparted),
    RelationBroken(RelationBroken),
    RelationBatch(RelationBatch),
    StorageAttached(StorageEvent),
    StorageDetaching(StorageEvent),
    SecretChanged(SecretEvent),
    SecretRotate(SecretEvent),
    SecretExpired(SecretRevisionEvent),
    SecretRemove(SecretRevisionEvent),
    PebbleReady(WorkloadEvent),
    PebbleCustomNotice(WorkloadNoticeEvent),
    PebbleCheckFailed(WorkloadCheckEvent),
    PebbleCheckRecovered(WorkloadCheckEvent),
    Action(ActionEvent),
    PreSeriesUpgrade(SeriesUpgradeEvent),
    PostSeriesUpgrade(SeriesUpgradeEvent),
    CollectMetrics,
    MeterStatusChanged(MeterStatusEvent),
    Custom(CustomEvent),
}

impl Event {
    /// Returns the hook's full name, such as `db-relation-joined`. An action and a custom event have their own name.
    pub fn hook_name(&self) -> String {
        match self {
            Self::Install => "install".to_owned(),
            Self::Start => "start".to_owned(),
            Self::Stop => "stop".to_owned(),
            Self::Remove => "remove".to_owned(),
            Self::ConfigChanged => "config-changed".to_owned(),
            Self::UpgradeCharm => "upgrade-charm".to_owned(),
            Self::UpdateStatus => "update-status".to_owned(),
            Self::LeaderElected => "leader-elected".to_owned(),
            Self::LeaderSettingsChanged => "leader-settings-changed".to_owned(),
            Self::RelationCreated(event) => format!("{}-relation-created", event.relation.endpoint()),
            Self::RelationJoined(event) => format!("{}-relation-joined", event.relation.endpoint()),
            Self::RelationChanged(event) => format!("{}-relation-changed", event.relation.endpoint()),
            Self::RelationDeparted(event) => format!("{}-relation-departed", event.relation.endpoint()),
            Self::RelationBroken(event) => format!("{}-relation-broken", event.relation.endpoint()),
            Self::RelationBatch(event) => format!("{}-relation-batch", event.relation.endpoint()),
            Self::StorageAttached(event) => format!("{}-storage-attached", event.name),
            Self::StorageDetaching(event) => format!("{}-storage-detaching", event.name),
            Self::SecretChanged(_) => "secret-changed".to_owned(),
            Self::SecretRotate(_) => "secret-rotate".to_owned(),
            Self::SecretExpired(_) => "secret-expired".to_owned(),
            Self::SecretRemove(_) => "secret-remove".to_owned(),
            Self::PebbleReady(event) => format!("{}-pebble-ready", event.workload),
            Self::PebbleCustomNotice(event) => format!("{}-pebble-custom-notice", event.workload),
            Self::PebbleCheckFailed(event) => format!("{}-pebble-check-failed", event.workload),
            Self::PebbleCheckRecovered(event) => format!("{}-pebble-check-recovered", event.workload),
            Self::Action(event) => event.name.clone(),
            Self::PreSeriesUpgrade(_) => "pre-series-upgrade".to_owned(),
            Self::PostSeriesUpgrade(_) => "post-series-upgrade".to_owned(),
            Self::CollectMetrics => "collect-metrics".to_owned(),
            Self::MeterStatusChanged(_) => "meter-status-changed".to_owned(),
            Self::Custom(event) => event.name.clone(),
        }
    }

    /// Returns the relation of a relation event.
    pub fn relation(&self) -> Option<&Relation> {
        match self {
            Self::RelationCreated(event) => Some(&event.relation),
            Self::RelationJoined(event) => Some(&event.relation),
            Self::RelationChanged(event) => Some(&event.relation),
            Self::RelationDeparted(event) => Some(&event.relation),
            Self::RelationBroken(event) => Some(&event.relation),
            Self::RelationBatch(event) => Some(&event.relation),
            _ => None,
        }
    }
}

impl From<wit::Event> for Event {
    fn from(event: wit::Event) -> Self {
        match event {
            wit::Event::Install => Self::Install,
            wit::Event::Start => Self::Start,
            wit::Event::Stop => Self::Stop,
            wit::Event::Remove => Self::Remove,
            wit::Event::ConfigChanged => Self::ConfigChanged,
            wit::Event::UpgradeCharm => Self::UpgradeCharm,
            wit::Event::UpdateStatus => Self::UpdateStatus,
            wit::Event::LeaderElected => Self::LeaderElected,
            wit::Event::LeaderSettingsChanged => Self::LeaderSettingsChanged,
            wit::Event::RelationCreated(event) => Self::RelationCreated(RelationCreated {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
            }),
            wit::Event::RelationJoined(event) => Self::RelationJoined(RelationJoined {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
                unit: event.remote_unit,
            }),
            wit::Event::RelationChanged(event) => Self::RelationChanged(RelationChanged {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
                unit: event.remote_unit,
            }),
            wit::Event::RelationDeparted(event) => Self::RelationDeparted(RelationDeparted {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
                unit: event.remote_unit,
                departing: event.departing_unit,
            }),
            wit::Event::RelationBroken(event) => Self::RelationBroken(RelationBroken {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
            }),
            wit::Event::RelationBatch(event) => Self::RelationBatch(RelationBatch {
                relation: Relation::new(event.relation, event.endpoint),
                app: event.remote_application,
                app_changed: event.application_changed,
                joined: event.joined,
                changed: event.changed,
                departed: event.departed,
            }),
            wit::Event::StorageAttached(event) => Self::StorageAttached(event),
            wit::Event::StorageDetaching(event) => Self::StorageDetaching(event),
            wit::Event::SecretChanged(event) => Self::SecretChanged(event),
            wit::Event::SecretRotate(event) => Self::SecretRotate(event),
            wit::Event::SecretExpired(event) => Self::SecretExpired(event),
            wit::Event::SecretRemove(event) => Self::SecretRemove(event),
            wit::Event::PebbleReady(event) => Self::PebbleReady(event),
            wit::Event::PebbleCustomNotice(event) => Self::PebbleCustomNotice(event),
            wit::Event::PebbleCheckFailed(event) => Self::PebbleCheckFailed(event),
            wit::Event::PebbleCheckRecovered(event) => Self::PebbleCheckRecovered(event),
            wit::Event::Action(event) => Self::Action(event),
            wit::Event::PreSeriesUpgrade(event) => Self::PreSeriesUpgrade(event),
            wit::Event::PostSeriesUpgrade(event) => Self::PostSeriesUpgrade(event),
            wit::Event::CollectMetrics => Self::CollectMetrics,
            wit::Event::MeterStatusChanged(event) => Self::MeterStatusChanged(event),
            wit::Event::Custom(event) => Self::Custom(event),
        }
    }
}
