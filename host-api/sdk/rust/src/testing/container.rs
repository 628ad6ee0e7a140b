//! A container beside a unit in memory, with a Pebble that a test sets up and looks into.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use serde_json::{Value, json};

use crate::{HttpResponse, PebbleOutput};

/// A request that a charm sends to a workload of a unit in memory.
#[derive(Debug, Clone)]
pub struct WorkloadRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The body.
    pub body: Vec<u8>,
}

pub(crate) type Serve = Box<dyn FnMut(&WorkloadRequest) -> Option<HttpResponse>>;
type Run = Box<dyn FnMut(&[String], &[u8]) -> PebbleOutput>;

/// The container's state. It has as much of a Pebble as charms see of it.
#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) directories: Vec<String>,
    pub(crate) layers: Vec<(String, String)>,
    pub(crate) actions: Vec<String>,
    pub(crate) services: Value,
    pub(crate) checks: Value,
    pub(crate) plan: String,
    pub(crate) notices: Vec<Value>,
    pub(crate) serve: Option<Serve>,
    pub(crate) run: Option<Run>,
    pub(crate) sends: Option<Vec<u8>>,
    /// The commands that were begun, each with the exit code that it ended with.
    pub(crate) commands: Vec<(Vec<String>, Option<i64>)>,
    pub(crate) errors: Vec<Vec<u8>>,
}

/// A container beside a unit in memory: [`Harness::container`](super::Harness::container) starts one. It keeps files and
/// layers, writes down what is asked of services and checks, and runs none.
///
/// ```
/// # use periapt_sdk::testing::Harness;
/// # use periapt_sdk::{Charm, Event, Result, Unit, WorkloadEvent};
/// # #[derive(Default)] struct Web;
/// # impl Charm for Web {
/// #     fn pebble_ready(&mut self, unit: &Unit, event: &WorkloadEvent) -> Result {
/// #         unit.pebble(&event.workload).push("/page.txt", "hello")?;
/// #         unit.pebble(&event.workload).replan()
/// #     }
/// # }
/// let mut unit = Harness::<Web>::new("web/0");
/// let web = unit.container("web");
/// unit.run(Event::PebbleReady(WorkloadEvent { workload: "web".to_owned() })).unwrap();
/// assert_eq!(web.file("/page.txt").as_deref(), Some("hello"));
/// assert_eq!(web.actions(), ["replan"]);
/// ```
#[derive(Clone, Default)]
pub struct Container(pub(crate) Rc<RefCell<Inside>>);

impl Container {
    /// Writes a file, as an image has it.
    pub fn write(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.0.borrow_mut().files.insert(path.to_owned(), content.into());
    }

    /// Returns a file as text; none if it is not there.
    pub fn file(&self, path: &str) -> Option<String> {
        self.0.borrow().files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns the last layer that was added under a label, as the charm wrote it.
    pub fn layer(&self, label: &str) -> Option<String> {
        let inside = self.0.borrow();
        inside.layers.iter().rev().find(|(known, _)| known == label).map(|(_, layer)| layer.clone())
    }

    /// Returns what was asked of services and checks, in order: `replan`, `start web`, `SIGHUP web`,
    /// `stop-checks page`.
    pub fn actions(&self) -> Vec<String> {
        self.0.borrow().actions.clone()
    }

    /// Returns the keys of the notices that the charm made.
    pub fn notices(&self) -> Vec<String> {
        let inside = self.0.borrow();
        inside.notices.iter().filter_map(|it| Some(it.get("key")?.as_str()?.to_owned())).collect()
    }

    /// Sets the services that the charm sees, each with its state: `active`, `inactive`, `backoff`, `error`.
    pub fn services(&self, services: &[(&str, &str)]) {
        let shown =
            |(name, current): &(&str, &str)| json!({"name": name, "startup": "enabled", "current": current});
        self.0.borrow_mut().services = services.iter().map(shown).collect();
    }

    /// Sets the checks that the charm sees, each with its state: `up`, `down`, `inactive`.
    pub fn checks(&self, checks: &[(&str, &str)]) {
        let shown = |(name, status): &(&str, &str)| json!({"name": name, "status": status, "threshold": 3});
        self.0.borrow_mut().checks = checks.iter().map(shown).collect();
    }

    /// Sets the plan that the charm sees.
    pub fn plan(&self, yaml: &str) {
        yaml.clone_into(&mut self.0.borrow_mut().plan);
    }

    /// Sets the function that runs commands: it gets the command and its input.
    pub fn runs(&self, run: impl FnMut(&[String], &[u8]) -> PebbleOutput + 'static) {
        self.0.borrow_mut().run = Some(Box::new(run));
    }

    /// Sets a function that answers requests before the container's Pebble does. That Pebble answers those for which the
    /// function returns none. So a test lets a call fail.
    pub fn answers(&self, answer: impl FnMut(&WorkloadRequest) -> Option<HttpResponse> + 'static) {
        self.0.borrow_mut().serve = Some(Box::new(answer));
    }

    /// Sets bytes that are sent in place of each response, after which the stream ends.
    pub fn sends(&self, bytes: impl Into<Vec<u8>>) {
        self.0.borrow_mut().sends = Some(bytes.into());
    }
}
