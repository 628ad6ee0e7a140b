//! Tasks and operations as Juju prints them, with its field names and texts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use periapt_host_api::{
    action::{OperationDetails, Parameters, TaskDetails, TaskMessage, TaskResults, TaskStatus},
    exec,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    error::Result,
    output::{Text, continued, to_json, to_yaml},
};

/// The forms of a task's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// The results alone
    Plain,
    /// JSON, on one line
    Json,
    /// YAML
    Yaml,
}

/// A task in the listing of `run`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Task {
    id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    log: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    results: Map<String, Value>,
    status: TaskStatus,
    timing: Timing,
    unit: String,
}

#[derive(Debug, Clone, Serialize)]
struct Timing {
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<String>,
    enqueued: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
}

/// The times of a task in an operation. There Juju orders the fields by time, and with tasks by name.
#[derive(Debug, Clone, Serialize)]
struct TimingInOrder {
    enqueued: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed: Option<String>,
}

/// An operation in the listing of `operations`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Operation {
    summary: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "String::is_empty")]
    fail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    timing: TimingInOrder,
    tasks: BTreeMap<String, OperationTask>,
}

#[derive(Debug, Clone, Serialize)]
struct Action {
    name: String,
    parameters: Parameters,
}

#[derive(Debug, Clone, Serialize)]
struct OperationTask {
    host: String,
    status: TaskStatus,
    timing: TimingInOrder,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    log: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "Map::is_empty")]
    results: Map<String, Value>,
}

/// Formats a time as Juju prints it. It is always UTC, so scripts read the same text everywhere.
fn time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

/// Formats a message that is shown while its task runs.
pub(super) fn live(message: &TaskMessage) -> String {
    format!("{} {}", message.at.strftime("%H:%M:%S"), continued(&message.message))
}

fn log(log: &[TaskMessage]) -> Vec<String> {
    log.iter().map(|entry| format!("{} {}", time(entry.at), entry.message)).collect()
}

/// Returns a task's results. Like Juju, it leaves out empty streams.
fn results(task: &TaskDetails) -> Map<String, Value> {
    let mut results = task.results.as_ref().map(|results| results.to_json()).unwrap_or_default();
    results.retain(|key, value| !matches!(key.as_str(), "stdout" | "stderr") || *value != "");
    results
}

impl Timing {
    fn of(task: &TaskDetails) -> Self {
        Self {
            completed: task.completed.map(time),
            enqueued: Some(time(task.enqueued)),
            started: task.started.map(time),
        }
    }

    fn in_order_of_time(self) -> TimingInOrder {
        let Self { completed, enqueued, started } = self;
        TimingInOrder { enqueued, started, completed }
    }
}

impl From<&TaskDetails> for Task {
    fn from(task: &TaskDetails) -> Self {
        Self {
            id: task.id.to_string(),
            log: log(&task.log),
            message: task.message.clone(),
            results: results(task),
            status: task.status,
            timing: Timing::of(task),
            unit: task.unit.to_string(),
        }
    }
}

impl From<&OperationDetails> for Operation {
    fn from(operation: &OperationDetails) -> Self {
        let tasks = operation.tasks.iter().map(|task| {
            let shown = OperationTask {
                host: task.unit.to_string(),
                status: task.status,
                timing: Timing::of(task).in_order_of_time(),
                log: log(&task.log),
                message: task.message.clone(),
                results: results(task),
            };
            (task.id.to_string(), shown)
        });
        Self {
            summary: operation.summary.clone(),
            status: operation.status,
            fail: operation.fail.clone(),
            action: operation
                .tasks
                .first()
                .map(|task| Action { name: task.action.clone(), parameters: task.parameters.clone() }),
            timing: TimingInOrder {
                enqueued: Some(time(operation.enqueued)),
                started: operation.started().map(time),
                completed: operation.completed().map(time),
            },
            tasks: tasks.collect(),
        }
    }
}

/// Formats tasks by their units.
pub(super) fn tasks(format: Format, tasks: &[TaskDetails]) -> Result<Text> {
    let by_unit = || tasks.iter().map(|task| (task.unit.to_string(), Task::from(task)));
    match format {
        Format::Json => to_json(&by_unit().collect::<BTreeMap<_, _>>()),
        Format::Yaml => to_yaml(&by_unit().collect::<BTreeMap<_, _>>()),
        Format::Plain => plain(tasks),
    }
}

/// A task among several in plain form, with Juju's fields in its order. Juju leaves the output streams out.
#[derive(Debug, Clone, Serialize)]
struct PlainTask {
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    output: String,
    status: TaskStatus,
    #[serde(skip_serializing_if = "String::is_empty")]
    stdout: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    stderr: String,
}

impl PlainTask {
    fn of(task: &TaskDetails) -> Result<Self> {
        let output = match &task.results {
            Some(results) if results.values.is_empty() => String::new(),
            Some(results) => to_yaml(&results.values)?.to_string(),
            None => format!("Task {} {}\n", task.id, task.status),
        };
        let TaskResults { stdout, stderr, .. } = task.results.clone().unwrap_or_default();
        Ok(Self {
            id: task.id.to_string(),
            message: task.message.clone(),
            output,
            status: task.status,
            stdout,
            stderr,
        })
    }
}

/// Formats the results of one task, or a map of several by unit. The output of scripts follows its unit's name, not
/// indented, as in Juju.
fn plain(tasks: &[TaskDetails]) -> Result<Text> {
    if let [task] = tasks {
        return plain_task(task);
    }
    if tasks.iter().all(|task| task.action == exec::ACTION) {
        let mut text = String::new();
        for task in tasks {
            text.push_str(&format!("{}:\n{}\n", task.unit, &*plain_task(task)?));
        }
        return Ok(Text::value(text));
    }
    let by_unit = tasks.iter().map(|task| Ok((task.unit.to_string(), PlainTask::of(task)?)));
    to_yaml(&by_unit.collect::<Result<BTreeMap<_, _>>>()?)
}

/// Formats the action's results, then its output.
pub(super) fn plain_task(task: &TaskDetails) -> Result<Text> {
    let Some(results) = &task.results else {
        return Ok(Text::value(match task.status {
            TaskStatus::Failed => format!("Action id {} failed: {}\n", task.id, task.message),
            status => format!("Action id {}: {status}\n", task.id),
        }));
    };
    let mut text = match task.status {
        TaskStatus::Failed => format!("Action id {} failed: {}\n", task.id, task.message),
        _ => String::new(),
    };
    if !results.values.is_empty() {
        text.push_str(&to_yaml(&results.values)?);
    }
    for stream in [&results.stdout, &results.stderr] {
        let stream = stream.trim_matches('\n');
        if !stream.is_empty() {
            text.push_str(&format!("{stream}\n"));
        }
    }
    Ok(Text::value(text))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ActionOperationId, TaskId};
    use serde_json::json;

    use super::*;

    fn task(unit: &str, status: TaskStatus) -> TaskDetails {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        TaskDetails {
            id: TaskId(2),
            operation: ActionOperationId(1),
            unit: unit.parse().unwrap(),
            action: "backup".to_owned(),
            parameters: Parameters::from_iter([("level".to_owned(), json!(3))]),
            status,
            message: if status == TaskStatus::Failed { "disk full".to_owned() } else { String::new() },
            enqueued: at(0),
            started: Some(at(1)),
            completed: Some(at(2)),
            log: vec![TaskMessage { at: at(1), message: "half way".to_owned() }],
            results: Some(TaskResults {
                return_code: 0,
                stdout: "done\n".to_owned(),
                stderr: String::new(),
                values: Map::from_iter([("size".to_owned(), json!("1M"))]),
            }),
            next: None,
        }
    }

    #[test]
    fn a_task_has_jujus_fields_in_json() {
        let text = tasks(Format::Json, &[task("app/0", TaskStatus::Completed)]).unwrap();
        let expected = json!({"app/0": {
            "id": "2",
            "log": ["2027-01-15 08:00:01 +0000 UTC half way"],
            "results": {"return-code": 0, "size": "1M", "stdout": "done\n"},
            "status": "completed",
            "timing": {
                "completed": "2027-01-15 08:00:02 +0000 UTC",
                "enqueued": "2027-01-15 08:00:00 +0000 UTC",
                "started": "2027-01-15 08:00:01 +0000 UTC",
            },
            "unit": "app/0",
        }});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    #[test]
    fn plain_is_what_the_action_set_and_wrote() {
        let one = tasks(Format::Plain, &[task("app/0", TaskStatus::Completed)]).unwrap();
        assert_eq!(one, "size: 1M\ndone\n");
        let failed = tasks(Format::Plain, &[task("app/0", TaskStatus::Failed)]).unwrap();
        assert_eq!(failed, "Action id 2 failed: disk full\nsize: 1M\ndone\n");
    }

    #[test]
    fn several_tasks_in_plain_form_are_a_map_of_their_units() {
        let stopped = TaskDetails { results: None, ..task("app/2", TaskStatus::Aborted) };
        let several = [task("app/0", TaskStatus::Completed), task("app/1", TaskStatus::Failed), stopped];
        let shown = tasks(Format::Plain, &several).unwrap();
        let expected = json!({
            "app/0": {"id": "2", "output": "size: 1M\n", "status": "completed", "stdout": "done\n"},
            "app/1": {
                "id": "2", "message": "disk full", "output": "size: 1M\n", "status": "failed", "stdout": "done\n",
            },
            "app/2": {"id": "2", "output": "Task 2 aborted\n", "status": "aborted"},
        });
        assert_eq!(serde_saphyr::from_str::<Value>(&shown).unwrap(), expected, "{shown}");
    }

    #[test]
    fn an_operation_has_jujus_fields() {
        let operation = OperationDetails {
            id: ActionOperationId(1),
            summary: "backup run on unit-app-0".to_owned(),
            status: TaskStatus::Completed,
            enqueued: Timestamp::from_second(1_800_000_000).unwrap(),
            fail: String::new(),
            tasks: vec![task("app/0", TaskStatus::Completed)],
        };
        let shown = serde_json::to_value(Operation::from(&operation)).unwrap();
        assert_eq!(shown["summary"], "backup run on unit-app-0");
        assert_eq!(shown["action"], json!({"name": "backup", "parameters": {"level": 3}}));
        assert_eq!(shown["tasks"]["2"]["host"], "app/0");
        assert_eq!(shown["timing"]["completed"], "2027-01-15 08:00:02 +0000 UTC");
    }
}
