//! The in-memory unit that answers a charm under test.

use super::declared::Declared;
use super::secrets::Secrets;
use super::streams::Workloads;
use crate::bindings::periapt::charm::{config, events, goal_state, hook_tools, log, status, types};
use crate::{OpenedPorts, Status};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub(crate) type Text = BTreeMap<String, String>;

/// The function that answers hook tools.
pub(crate) type Tools = Box<dyn FnMut(&str, &[String]) -> hook_tools::Output>;

/// The state that a failed hook leaves unchanged.
#[derive(Clone, Default)]
pub(crate) struct Durable {
    pub(crate) relations: BTreeMap<u32, RelationState>,
    pub(crate) ports: Vec<OpenedPorts>,
    pub(crate) state: Text,
    pub(crate) added_storage: BTreeMap<String, u32>,
    pub(crate) secrets: Secrets,
    pub(crate) next_event: u64,
    pub(crate) events: BTreeMap<u64, events::Later>,
}

#[derive(Clone)]
pub(crate) struct RelationState {
    pub(crate) endpoint: String,
    pub(crate) remote: String,
    pub(crate) members: BTreeSet<String>,
    /// True once the relation is broken. An endpoint's relations leave it out, and its bags can still be read.
    pub(crate) broken: bool,
    pub(crate) units: BTreeMap<String, Text>,
    pub(crate) applications: BTreeMap<String, Text>,
}

pub(crate) struct State {
    pub(crate) unit: String,
    pub(crate) leader: bool,
    pub(crate) principal: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) config: BTreeMap<String, config::Value>,
    pub(crate) durable: Durable,
    pub(crate) storage: BTreeMap<String, String>,
    pub(crate) resources: BTreeMap<String, Attached>,
    pub(crate) status: Option<Status>,
    pub(crate) application_status: Option<Status>,
    pub(crate) version: Option<String>,
    pub(crate) goal: goal_state::GoalState,
    pub(crate) log: Vec<(log::Level, String)>,
    pub(crate) tools: Option<Tools>,
    pub(crate) action: Option<Action>,
    /// The charm's metadata, if the test sets it.
    pub(crate) declared: Declared,
    /// The open ports at the start of the hook.
    pub(crate) ports_before: Vec<OpenedPorts>,
    pub(crate) workloads: Workloads,
}

/// The content of a resource.
pub(crate) struct Attached {
    pub(crate) path: PathBuf,
    pub(crate) revision: u32,
    pub(crate) sha256: String,
}

/// The running action, or the last one.
#[derive(Clone, Default)]
pub(crate) struct Action {
    /// JSON text by path.
    pub(crate) params: Text,
    pub(crate) results: Text,
    pub(crate) log: Vec<String>,
    pub(crate) failed: Option<String>,
    /// True while the action runs. Its calls are refused in other hooks.
    pub(crate) running: bool,
}

thread_local! {
    static CURRENT: RefCell<Option<State>> = const { RefCell::new(None) };
}

impl State {
    pub(crate) fn new(unit: &str) -> Self {
        Self {
            unit: unit.to_owned(),
            leader: false,
            principal: None,
            address: Some("10.0.0.1".to_owned()),
            config: BTreeMap::new(),
            durable: Durable::default(),
            storage: BTreeMap::new(),
            resources: BTreeMap::new(),
            status: None,
            application_status: None,
            version: None,
            goal: goal_state::GoalState { units: Vec::new(), relations: Vec::new() },
            log: Vec::new(),
            tools: None,
            action: None,
            declared: Declared::default(),
            ports_before: Vec::new(),
            workloads: Workloads::default(),
        }
    }

    pub(crate) fn application(&self) -> &str {
        self.unit.split_once('/').map_or(self.unit.as_str(), |(application, _)| application)
    }

    pub(crate) fn relation(&mut self, id: u32) -> Result<&mut RelationState, types::Error> {
        let missing = types::Error::NotFound("relation not found".to_owned());
        self.durable.relations.get_mut(&id).ok_or(missing)
    }

    pub(crate) fn not_leader(&self, message: &str) -> Result<(), types::Error> {
        if self.leader { Ok(()) } else { Err(types::Error::NotLeader(message.to_owned())) }
    }

    pub(crate) fn status_info(status: Option<&Status>) -> status::StatusInfo {
        let word = match status.map(|status| status.workload) {
            None => status::Status::Unknown,
            Some(status::WorkloadStatus::Maintenance) => status::Status::Maintenance,
            Some(status::WorkloadStatus::Blocked) => status::Status::Blocked,
            Some(status::WorkloadStatus::Waiting) => status::Status::Waiting,
            Some(status::WorkloadStatus::Active) => status::Status::Active,
        };
        let message = status.map(|status| status.message.clone()).unwrap_or_default();
        status::StatusInfo { status: word, message, data: "{}".to_owned() }
    }
}

/// Answers the calls that `hook` makes on this thread from `state`.
pub(crate) fn with<T>(state: &mut Option<State>, hook: impl FnOnce() -> T) -> T {
    /// A guard that returns the state even if the hook panics.
    struct StateGuard<'a>(&'a mut Option<State>);
    impl Drop for StateGuard<'_> {
        fn drop(&mut self) {
            *self.0 = CURRENT.take();
        }
    }
    CURRENT.set(state.take());
    let _lent = StateGuard(state);
    hook()
}

/// Calls a function with the state of this thread's hook.
#[expect(clippy::panic, reason = "only tests come here, and this is how they learn of a missing harness")]
pub(crate) fn current<T>(call: impl FnOnce(&mut State) -> T) -> T {
    CURRENT.with_borrow_mut(|state| match state {
        Some(state) => call(state),
        None => panic!("a charm's code was called outside `testing::Harness`, which answers for the host"),
    })
}

/// Applies changes to a bag: an empty value removes its key.
pub(crate) fn apply(bag: &mut Text, changes: &[(String, String)]) {
    for (key, value) in changes {
        if value.is_empty() {
            bag.remove(key);
        } else {
            bag.insert(key.clone(), value.clone());
        }
    }
}
