//! The Pebble of a container: the services and files of a workload.

use std::fmt;

use serde_json::{Value, json};

use crate::{
    Context as _, Error, Result, WorkloadStream,
    http::{HttpRequest, HttpResponse, exchange},
};

/// The most bytes of an answer: a plan may have some MiB.
const MAX_ANSWER: usize = 8 << 20;

/// The tries to see the end of a change, each of [`TRY_SECONDS`].
const TRIES: u32 = 8;

/// The seconds of one try: the host ends a request that is silent for longer.
const TRY_SECONDS: u32 = 4;

/// The boundary between the parts of an upload.
const BOUNDARY: &str = "periapt-sdk-form-boundary";

/// The Pebble of a container: it runs the container's services, and writes its files. A WebAssembly workload is a container
/// of its name, with one service of the same name.
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

/// A service of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleService {
    /// The name.
    pub name: String,
    /// `enabled` or `disabled`: whether `replan` starts it.
    pub startup: String,
    /// `active`, `inactive`, `backoff` (it ended, and is about to be started again) or `error`.
    pub current: String,
}

impl PebbleService {
    fn of(shown: &Value) -> Self {
        let text = |key| shown.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { name: text("name"), startup: text("startup"), current: text("current") }
    }

    /// Returns true if the service runs.
    pub fn is_running(&self) -> bool {
        self.current == "active"
    }
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

    /// Returns the services of the plan, by name.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn services(&self) -> Result<Vec<PebbleService>> {
        let answer = self.ask(&HttpRequest::get("/v1/services"))?;
        let services = answer.get("result").and_then(Value::as_array).into_iter().flatten();
        Ok(services.map(PebbleService::of).collect())
    }

    /// Writes a file, with the directories above it. Workloads read it below their own root.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or as [`connect`](Self::connect).
    pub fn push(&self, path: &str, content: impl AsRef<[u8]>) -> Result {
        if !path.starts_with('/') || path.contains(['"', '\\']) || path.contains(char::is_control) {
            return Err(Error::new(format!("{self}: {path:?} is no absolute path of a file")));
        }
        let order = json!({ "action": "write", "files": [{ "path": path, "make-dirs": true }] });
        let name = |name: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"");
        let head = format!(
            "{}\r\nContent-Type: application/json\r\n\r\n{order}\r\n{}; filename=\"{path}\"\r\n\r\n",
            name("request"),
            name("files")
        );
        let end = format!("\r\n--{BOUNDARY}--\r\n");
        let content = content.as_ref();
        if content.windows(BOUNDARY.len()).any(|bytes| bytes == BOUNDARY.as_bytes()) {
            return Err(Error::new(format!(
                "{self}: {path} contains the text {BOUNDARY:?}, which uploads end with"
            )));
        }
        let body = [head.as_bytes(), content, end.as_bytes()].concat();
        let kind = format!("multipart/form-data; boundary={BOUNDARY}");
        let request = HttpRequest { method: "POST", path: "/v1/files", kind: &kind, body: &body };
        let answer = self.ask(&request)?;
        // Each file has a result of its own.
        match answer.pointer("/result/0/error/message").and_then(Value::as_str) {
            Some(message) => Err(Error::new(format!("{self}: {message}"))),
            None => Ok(()),
        }
    }

    /// Asks for a change of services, and waits for its end.
    fn act(&self, action: &str, services: &[&str]) -> Result {
        let begun = self.post("/v1/services", &json!({ "action": action, "services": services }))?;
        let is_id = |id: &&str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
        let change = begun.get("change").and_then(Value::as_str).filter(is_id);
        let change = change.ok_or_else(|| Error::new(format!("{self}: {action} began no change")))?;
        let wait = format!("/v1/changes/{change}/wait?timeout={TRY_SECONDS}s");
        for _ in 0..TRIES {
            let response = self.exchange(&HttpRequest::get(&wait))?;
            // 504 means that the change still goes on.
            if response.status != 504 {
                let ended = self.answer(&response)?;
                return match failure(ended.get("result").unwrap_or(&Value::Null)) {
                    Some(message) => Err(Error::new(format!("{self}: {message}"))),
                    None => Ok(()),
                };
            }
        }
        let seconds = TRIES * TRY_SECONDS;
        Err(Error::new(format!("{self}: {action} still goes on after {seconds} s")))
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let kind = "application/json";
        self.ask(&HttpRequest { method: "POST", path, kind, body: body.as_bytes() })
    }

    fn ask(&self, request: &HttpRequest<'_>) -> Result<Value> {
        self.answer(&self.exchange(request)?)
    }

    fn exchange(&self, request: &HttpRequest<'_>) -> Result<HttpResponse> {
        let mut stream = self.connect().context(self)?;
        exchange(&mut stream, request, MAX_ANSWER).context(self)
    }

    /// Returns the answer of the API.
    fn answer(&self, response: &HttpResponse) -> Result<Value> {
        let answer = serde_json::from_slice(&response.body).ok().filter(Value::is_object);
        let status = response.status;
        match answer {
            Some(answer) if response.is_success() => Ok(answer),
            Some(answer) => {
                let message = answer.pointer("/result/message").and_then(Value::as_str).unwrap_or_default();
                Err(Error::new(format!("{self}: {message} (status {status})")))
            }
            None => Err(Error::new(format!("{self}: its answer with status {status} is unreadable"))),
        }
    }
}

impl fmt::Display for Pebble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {:?}", self.container)
    }
}

/// Returns the error of a change that has ended, with what its tasks logged; none if it succeeded.
fn failure(change: &Value) -> Option<String> {
    if change.get("status").and_then(Value::as_str) == Some("Done") {
        return None;
    }
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let error = change.get("err").and_then(texts).unwrap_or_else(|| "the change failed".to_owned());
    let tasks = change.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let logs = tasks.filter_map(|task| task.get("log")?.as_array()).flatten().filter_map(texts);
    Some(std::iter::once(error).chain(logs).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_failed_is_an_error_with_what_its_tasks_logged() {
        assert_eq!(failure(&json!({ "status": "Done", "err": null })), None);
        let change = json!({
            "status": "Error",
            "err": "cannot start service: exited quickly with code 1",
            "tasks": [{ "log": ["INFO Most recent service output:\n    no such file"] }, { "log": null }],
        });
        assert_eq!(
            failure(&change).unwrap(),
            "cannot start service: exited quickly with code 1\nINFO Most recent service output:\n    no such file"
        );
        assert_eq!(failure(&json!([])).unwrap(), "the change failed");
    }

    #[test]
    fn an_answer_that_refuses_or_makes_no_sense_is_one_error() {
        let web = Pebble::new("web");
        let told = |status, body: &str| {
            let response = HttpResponse { status, body: body.into() };
            web.answer(&response).map(|answer| answer["result"].clone()).map_err(|error| error.to_string())
        };
        assert_eq!(told(200, r#"{"type":"sync","result":[1]}"#), Ok(json!([1])));
        assert_eq!(
            told(400, r#"{"type":"error","result":{"message":"cannot parse layer"}}"#).unwrap_err(),
            "container \"web\": cannot parse layer (status 400)"
        );
        for body in ["", "nonsense", "[]"] {
            let unreadable = "container \"web\": its answer with status 500 is unreadable";
            assert_eq!(told(500, body).unwrap_err(), unreadable);
        }
    }

    #[test]
    fn a_path_that_would_break_the_form_is_refused() {
        for path in ["etc/x", "/a\"b", "/a\r\nb", "/a\\b"] {
            let error = Pebble::new("web").push(path, "x").unwrap_err();
            assert!(error.to_string().contains("is no absolute path of a file"), "{error}");
        }
    }
}
