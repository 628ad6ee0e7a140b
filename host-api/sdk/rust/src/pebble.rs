//! The Pebble of a container: the services, files and commands of a workload.

mod answer;
mod commands;
mod error;
mod files;
mod told;

use std::fmt;

use serde_json::{Value, json};

use crate::{Context as _, Error, Result, WorkloadStream, http::HttpRequest};

use answer::encoded;
pub use commands::{PebbleExec, PebbleOutput};
pub use error::PebbleError;
pub use files::{FileAccess, FileInfo};
pub use told::{PebbleCheck, PebbleNotice, PebbleService};

/// The Pebble of a container: it runs the container's services and commands, and has its files. A WebAssembly workload is
/// a container of its name, with one service of the same name.
///
/// Its calls take effect at once, outside of the hook's commit: their effects stay if the hook fails. A container keeps
/// nothing: after a restart it has no layers and files, and the charm is told `pebble-ready` again.
///
/// ```no_run
/// # use periapt_sdk::{Result, Status, Unit};
/// # fn handler(unit: &Unit) -> Result {
/// let web = unit.pebble("web");
/// web.push("/index.html", "hello")?;
/// // JSON is YAML. `serde_json::json!` also quotes what a setting contains.
/// web.add_layer("charm", r#"{"services": {"web": {"override": "merge", "environment": {"TITLE": "Hi"}}}}"#)?;
/// web.replan()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Pebble {
    container: String,
}

impl Pebble {
    pub(crate) fn new(container: &str) -> Self {
        Self { container: container.to_owned() }
    }

    /// Opens a stream to the API, which speaks HTTP.
    ///
    /// # Errors
    ///
    /// When the charm declares no such container, or nobody listens: the container has not started yet, or the agent
    /// runs no such workloads.
    pub fn connect(&self) -> Result<WorkloadStream> {
        WorkloadStream::to_pebble(&self.container)
    }

    /// Returns true if the container has started and answers.
    pub fn can_connect(&self) -> bool {
        self.boot_id().is_ok()
    }

    /// Returns the id of the container's start. It differs after each restart.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn boot_id(&self) -> Result<String> {
        let answer = self.ask(&HttpRequest::get("/v1/system-info"))?;
        Ok(answer.pointer("/result/boot-id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Adds a layer in YAML, or combines it with the layer of the same label. Services change at the next
    /// [`replan`](Self::replan).
    ///
    /// # Errors
    ///
    /// When the layer is wrong, or as [`connect`](Self::connect).
    pub fn add_layer(&self, label: &str, layer: &str) -> Result {
        let body =
            json!({ "action": "add", "combine": true, "label": label, "format": "yaml", "layer": layer });
        self.post("/v1/layers", &body).map(drop)
    }

    /// Returns the plan, which all layers give together, in YAML.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn plan(&self) -> Result<String> {
        let answer = self.ask(&HttpRequest::get("/v1/plan?format=yaml"))?;
        Ok(answer.get("result").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Starts enabled services that do not run, and restarts those that the plan has otherwise than they run. Waits
    /// until each has run for a second.
    ///
    /// # Errors
    ///
    /// When a service cannot be started, with its last output; or as [`connect`](Self::connect).
    pub fn replan(&self) -> Result {
        self.act("replan", &[])
    }

    /// Starts services, and waits until each has run for a second.
    ///
    /// # Errors
    ///
    /// As [`replan`](Self::replan).
    pub fn start(&self, services: &[&str]) -> Result {
        self.act("start", services)
    }

    /// Stops services, and waits until they have ended.
    ///
    /// # Errors
    ///
    /// As [`replan`](Self::replan).
    pub fn stop(&self, services: &[&str]) -> Result {
        self.act("stop", services)
    }

    /// Stops services that run, and starts them all.
    ///
    /// # Errors
    ///
    /// As [`replan`](Self::replan).
    pub fn restart(&self, services: &[&str]) -> Result {
        self.act("restart", services)
    }

    /// Sends a signal, such as `SIGHUP`, to services that run.
    ///
    /// # Errors
    ///
    /// When there is no such signal, or a service does not run; or as [`connect`](Self::connect).
    pub fn send_signal(&self, signal: &str, services: &[&str]) -> Result {
        self.post("/v1/signals", &json!({ "signal": signal, "services": services })).map(drop)
    }

    /// Returns the services of the plan, by name.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn services(&self) -> Result<Vec<PebbleService>> {
        self.list("/v1/services", PebbleService::of)
    }

    /// Returns a service of the plan; none if the plan has no such service.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn service(&self, name: &str) -> Result<Option<PebbleService>> {
        Ok(self.services()?.into_iter().find(|service| service.name == name))
    }

    /// Returns the checks of the plan, by name.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn checks(&self) -> Result<Vec<PebbleCheck>> {
        self.list("/v1/checks", PebbleCheck::of)
    }

    /// Starts checks, and returns the names of those that did not run.
    ///
    /// # Errors
    ///
    /// When no check is named, or the plan has no such check; or as [`connect`](Self::connect).
    pub fn start_checks(&self, checks: &[&str]) -> Result<Vec<String>> {
        self.act_on_checks("start", checks)
    }

    /// Stops checks until [`start_checks`](Self::start_checks) or [`replan`](Self::replan), and returns the names of
    /// those that ran.
    ///
    /// # Errors
    ///
    /// As [`start_checks`](Self::start_checks).
    pub fn stop_checks(&self, checks: &[&str]) -> Result<Vec<String>> {
        self.act_on_checks("stop", checks)
    }

    /// Returns the notices of the container, the oldest first.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn notices(&self) -> Result<Vec<PebbleNotice>> {
        self.list("/v1/notices?users=all", PebbleNotice::of)
    }

    /// Returns a notice by its id, such as that of a `pebble-custom-notice`.
    ///
    /// # Errors
    ///
    /// When there is no such notice, or as [`connect`](Self::connect).
    pub fn notice(&self, id: &str) -> Result<PebbleNotice> {
        let answer = self.ask(&HttpRequest::get(&format!("/v1/notices/{}", encoded(id))))?;
        Ok(PebbleNotice::of(answer.get("result").unwrap_or(&Value::Null)))
    }

    /// Makes a custom notice, or repeats it, and returns its id. A key is as in `example.com/backup-done`.
    ///
    /// # Errors
    ///
    /// When the key or the data are not valid, or as [`connect`](Self::connect).
    pub fn notify(&self, key: &str, data: &[(&str, &str)]) -> Result<String> {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect();
        let answer = self
            .post("/v1/notices", &json!({ "action": "add", "type": "custom", "key": key, "data": data }))?;
        Ok(answer.pointer("/result/id").and_then(Value::as_str).unwrap_or_default().to_owned())
    }

    /// Asks for a change of services, and waits for its end.
    fn act(&self, action: &str, services: &[&str]) -> Result {
        let begun = self.post("/v1/services", &json!({ "action": action, "services": services }))?;
        self.ended(&begun, action).map(drop)
    }

    fn act_on_checks(&self, action: &str, checks: &[&str]) -> Result<Vec<String>> {
        let answer = self.post("/v1/checks", &json!({ "action": action, "checks": checks }))?;
        let changed = answer.pointer("/result/changed").and_then(Value::as_array).into_iter().flatten();
        Ok(changed.filter_map(|name| Some(name.as_str()?.to_owned())).collect())
    }

    /// Asks for a list.
    fn list<T>(&self, path: &str, of: impl Fn(&Value) -> T) -> Result<Vec<T>> {
        let answer = self.ask(&HttpRequest::get(path))?;
        let entries = answer.get("result").and_then(Value::as_array).into_iter().flatten();
        Ok(entries.map(of).collect())
    }

    /// Returns an error of the SDK's own.
    fn error(&self, kind: &str, message: impl Into<String>) -> Error {
        let error = PebbleError { kind: kind.to_owned(), message: message.into(), status: 0 };
        Err::<(), _>(Error::of_pebble(error)).context(self).err().unwrap_or_else(Error::unhandled)
    }
}

impl fmt::Display for Pebble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {:?}", self.container)
    }
}
