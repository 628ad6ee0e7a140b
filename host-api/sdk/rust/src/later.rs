//! Custom events that a charm schedules.

use crate::bindings::periapt::charm::events as wit;
use crate::{Bag, Error, Result, Unit, host};
use std::time::Duration;

/// A custom event that the charm schedules. The unit gets it once, as [`custom`](crate::Charm::custom), after a time
/// or when a value differs from the one that this hook sees, whichever comes first. A charm that cannot do its work
/// yet schedules such an event instead of failing the hook.
///
/// ```
/// # use periapt_sdk::{Charm, Context, CustomEvent, Later, RelationChanged, Result, Unit, testing::Harness};
/// # use std::time::Duration;
/// # #[derive(Default)] struct Client;
/// impl Charm for Client {
///     fn relation_changed(&mut self, unit: &Unit, event: &RelationChanged) -> Result {
///         let server = event.relation.remote_app_bag()?;
///         if server.get::<String>("password")?.is_none() {
///             let later = Later::new("connect").when_changes(&server, "password").after(Duration::from_secs(600));
///             unit.emit(later)?;
///         }
///         Ok(())
///     }
///
///     fn custom(&mut self, unit: &Unit, event: &CustomEvent) -> Result {
///         assert_eq!(event.name, "connect");
///         unit.set_version("connected")
///     }
/// }
///
/// let mut unit = Harness::<Client>::new("client/0");
/// let db = unit.relate("db", "server");
/// unit.change_app(&db, &[("host", "10.0.0.2")]).unwrap();
/// unit.fire("connect").unwrap();
/// assert!(unit.pending().is_empty());
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is asked for by `Unit::emit`"]
pub struct Later(wit::Later);

/// A custom event that this unit waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The event's number, by which the charm cancels it.
    pub id: u64,
    /// The event's name.
    pub name: String,
    /// The event's data, as JSON text.
    pub json: String,
    /// The delay after the hook that scheduled the event. `None` means that only a condition makes the event due.
    pub after: Option<Duration>,
}

impl Later {
    /// Creates an event with a name of the charm's own: lower-case letters, digits and dashes.
    pub fn new(name: &str) -> Self {
        Self(wit::Later { name: name.to_owned(), json: None, after: None, conditions: Vec::new() })
    }

    /// Makes the event due so long after this hook; a second to a year.
    pub fn after(mut self, time: Duration) -> Self {
        self.0.after = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Makes the event due when an option has another value.
    pub fn when_config_changes(mut self, option: &str) -> Self {
        self.0.conditions.push(wit::Condition::Config(option.to_owned()));
        self
    }

    /// Makes the event due when a key of another unit's or application's bag has another value, or when the relation
    /// is over.
    pub fn when_changes(mut self, bag: &Bag, key: &str) -> Self {
        let (relation, bag) = bag.parts();
        let key = key.to_owned();
        self.0.conditions.push(wit::Condition::Relation(wit::RelationKey { relation, bag, key }));
        self
    }

    /// Makes the event due when another unit leads the application.
    pub fn when_leader_changes(mut self) -> Self {
        self.0.conditions.push(wit::Condition::Leader);
        self
    }

    /// Sets the event's data, as JSON text of at most 16 KiB; `null` by default.
    pub fn json(mut self, json: impl Into<String>) -> Self {
        self.0.json = Some(json.into());
        self
    }
}

impl Unit {
    /// Schedules an event with this hook's commit, and returns its number.
    ///
    /// # Errors
    ///
    /// When the event has neither a time nor a condition, when its name is a hook's, when a bag may not be read, or
    /// when the unit waits for 64 events.
    pub fn emit(&self, later: Later) -> Result<u64> {
        host::events::emit_later(&later.0).map_err(Error::refused)
    }

    /// Cancels an event.
    ///
    /// # Errors
    ///
    /// When the unit waits for no event of this number.
    pub fn cancel(&self, id: u64) -> Result {
        host::events::cancel(id).map_err(Error::refused)
    }

    /// Returns the events that this unit waits for, by number, this hook's changes included.
    pub fn pending(&self) -> Vec<Pending> {
        let pending = host::events::pending().into_iter();
        pending.map(|event| Pending::new(event.id, event.name, event.json, event.after)).collect()
    }
}

impl Pending {
    pub(crate) fn new(id: u64, name: String, json: String, after_ms: Option<u64>) -> Self {
        Self { id, name, json, after: after_ms.map(Duration::from_millis) }
    }
}
