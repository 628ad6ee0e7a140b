//! The inputs and outputs of a supervisor.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::Timestamp;
use periapt_host_api::notice::WorkloadNotice;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    duration::{GoDuration, optional},
    log::OutputLine,
    log_push::{LogPush, LogPushResult, LogTargetState},
    plan::CheckLevel,
    signal::Signal,
    word::words,
};

/// The time of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodTime {
    /// The time since the pod began, which never goes back: pauses and time-outs are counted on it.
    pub since_start: Duration,
    /// The date, which can be set: the API shows it.
    pub date: Timestamp,
}

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodCaller {
    /// The client's user, as the kernel names it; none for a client of the open HTTP port.
    pub user_id: Option<u32>,
    /// True for root and for the pod's own user.
    pub is_owner: bool,
}

macro_rules! ids {
    ($($(#[$attribute:meta])* $name:ident),+) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
            pub struct $name(pub u64);

            impl fmt::Display for $name {
                fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(to)
                }
            }
        )+
    };
}

ids! {
    /// A request, numbered by the caller.
    RequestId,
    /// A process that the supervisor has asked for. No number is used twice.
    ProcessId,
    /// A question of a check. No number is used twice.
    ProbeId,
    /// A push of lines to a log target. No number is used twice.
    LogPushId,
    /// A task of a change.
    TaskId,
    /// A change.
    ChangeId
}

impl TaskId {
    /// Reads an id of the API.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl ChangeId {
    /// Reads an id of the API.
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// An event that the supervisor is told.
#[derive(Debug, Clone, PartialEq)]
pub enum PodInput {
    /// The pod begins with services of its own, by name and with their commands. They are the lowest layer of the plan, and
    /// are started again from their first start on.
    Begin(BTreeMap<String, String>),
    /// Time has passed: [`crate::Supervisor::next_wake`] has come.
    Tick,
    /// A client asks.
    Request {
        /// The number for the answer.
        id: RequestId,
        /// The client.
        caller: PodCaller,
        /// The question.
        request: PodRequest,
    },
    /// A client that waits has gone.
    Gone(RequestId),
    /// A process runs.
    Spawned(ProcessId),
    /// A process could not be started, in words.
    SpawnFailed(ProcessId, String),
    /// A process has ended, and its output has been read.
    Exited(ProcessId, Exit),
    /// A process has written to its log.
    Wrote(ProcessId, Vec<u8>),
    /// A probe has an answer: none if all is well, or the error in words.
    Probed(ProbeId, Result<(), String>),
    /// A push of lines has ended.
    Pushed(LogPushId, LogPushResult),
    /// The pod is to end with an exit code: services are stopped first.
    End(i32),
}

/// The end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exit {
    /// The exit code; 128 and the signal's number for a process that a signal ended.
    pub code: i32,
    /// The last output of a process with [`Stdio::Tail`].
    pub tail: String,
}

/// An order of the supervisor's.
#[derive(Debug, Clone, PartialEq)]
pub enum PodOutput {
    /// Answers a request.
    Respond(RequestId, Result<PodAnswer, PodRefusal>),
    /// Starts a process, in a process group of its own. The answer is `Spawned` or `SpawnFailed`, then `Exited`.
    Spawn(ProcessId, Box<Spawn>),
    /// Sends a signal to a process and its group, after earlier orders about it.
    Signal(ProcessId, Signal),
    /// Closes the streams of a command whose process has ended and whose output others hold open.
    Abandon(ProcessId),
    /// Drops the websockets of a command that will not run.
    Forget(TaskId),
    /// Asks a workload.
    Probe(ProbeId, Probe, Duration),
    /// Sends lines to a log target. The answer is `Pushed`.
    Push(LogPushId, Box<LogPush>),
    /// Tells the operator how a log target, by its name, has changed.
    LogTarget(String, LogTargetState),
    /// Tells the operator that a service ended by itself, or could not be started again, and the reason in words.
    ServiceEnded(String, String),
    /// Tells the charm of a notice.
    Notice(WorkloadNotice),
    /// Ends the pod with an exit code: no service runs any more.
    Shutdown(i32),
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spawn {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// Variables beside those that every process gets.
    pub environment: BTreeMap<String, String>,
    /// The working directory; the user's home if it is empty and a command of `exec`, else `/`.
    pub working_dir: String,
    /// The account of the process.
    pub account: Account,
    /// The streams.
    pub stdio: Stdio,
}

/// The account of a process; the pod's own if nothing is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The user's name.
    pub user: Option<String>,
    /// The user's number.
    pub user_id: Option<u32>,
    /// The group's name.
    pub group: Option<String>,
    /// The group's number.
    pub group_id: Option<u32>,
}

impl Account {
    /// Returns true if nothing is set.
    #[must_use]
    pub fn is_own(&self) -> bool {
        *self == Self::default()
    }
}

/// The streams of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stdio {
    /// Output goes to `Input::Wrote`.
    #[default]
    Log,
    /// The end of the output goes into [`Exit::tail`].
    Tail,
    /// The streams are the websockets of a task.
    Websockets {
        /// The task.
        task: TaskId,
        /// Standard error has a websocket of its own.
        split_stderr: bool,
        /// The terminal's columns and rows, if the streams are one.
        terminal: Option<(u16, u16)>,
    },
}

/// A question to a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// A GET that must answer with 2xx.
    Http {
        /// The URL.
        url: String,
        /// Further headers.
        headers: BTreeMap<String, String>,
    },
    /// A connection that must be accepted.
    Tcp {
        /// The host; the pod's own if empty.
        host: String,
        /// The port.
        port: u16,
    },
}

/// A question or an order of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum PodRequest {
    /// Permission for what another part of the pod answers: files.
    Authorize,
    /// `GET /v1/system-info`.
    SystemInfo,
    /// `GET /v1/health`.
    Health {
        /// The level that counts.
        level: Option<CheckLevel>,
        /// The checks that count; all if empty.
        names: Vec<String>,
    },
    /// `GET /v1/plan`.
    Plan,
    /// `POST /v1/layers`.
    AddLayer(AddLayer),
    /// `GET /v1/services`.
    Services {
        /// The services; all if empty.
        names: Vec<String>,
    },
    /// `POST /v1/services`.
    ActOnServices(ServicesBody),
    /// `POST /v1/signals`.
    Signal(SignalsBody),
    /// `GET /v1/changes`.
    Changes {
        /// `all`, `in-progress` or `ready`.
        select: String,
        /// Changes of this service alone.
        service: Option<String>,
    },
    /// `GET /v1/changes/{id}`.
    Change(String),
    /// `GET /v1/changes/{id}/wait`.
    WaitChange(String, Option<Duration>),
    /// `POST /v1/changes/{id}` with the action `abort`.
    AbortChange(String),
    /// `POST /v1/exec`.
    Exec(Box<ExecBody>),
    /// `GET /v1/tasks/{id}/websocket/{name}`.
    Websocket(String, WebsocketName),
    /// `GET /v1/checks`.
    Checks {
        /// The level.
        level: Option<CheckLevel>,
        /// The checks; all if empty.
        names: Vec<String>,
    },
    /// `POST /v1/checks`.
    ActOnChecks(ChecksBody),
    /// `GET /v1/notices`.
    Notices(Box<NoticesQuery>),
    /// `POST /v1/notices`.
    Notify(NoticeBody),
    /// `GET /v1/notices/{id}`.
    Notice(String),
    /// `GET /v1/metrics`.
    Metrics,
    /// `GET /v1/identities`.
    Identities,
    /// `POST /v1/identities`.
    ActOnIdentities(IdentitiesBody),
    /// `GET /v1/warnings`.
    Warnings {
        /// All of them, not just those that were not seen.
        all: bool,
    },
    /// `POST /v1/warnings`.
    Okay(Timestamp),
    /// `GET /v1/logs`.
    Logs {
        /// The services; all if empty.
        services: Vec<String>,
        /// The newest lines alone; all if none.
        newest: Option<usize>,
        /// Lines from this number on alone.
        from: u64,
    },
}

/// The body of `POST /v1/layers`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AddLayer {
    /// `add`.
    pub action: String,
    /// Combines with the layer of the label.
    #[serde(default)]
    pub combine: bool,
    /// The label.
    #[serde(default)]
    pub label: String,
    /// `yaml`.
    #[serde(default)]
    pub format: String,
    /// The layer.
    #[serde(default)]
    pub layer: String,
}

words! {
    /// An order about services.
    pub enum ServicesAction {
        /// Starts.
        Start = "start",
        /// Stops.
        Stop = "stop",
        /// Stops what runs, and starts.
        Restart = "restart",
        /// Starts what has changed or is enabled.
        Replan = "replan",
        /// Starts what is enabled.
        Autostart = "autostart",
    }
}

/// The body of `POST /v1/services`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServicesBody {
    /// The order.
    pub action: ServicesAction,
    /// The services.
    #[serde(default, deserialize_with = "or_empty")]
    pub services: Vec<String>,
}

words! {
    /// An order about checks.
    pub enum ChecksAction {
        /// Starts.
        Start = "start",
        /// Stops.
        Stop = "stop",
    }
}

/// The body of `POST /v1/checks`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ChecksBody {
    /// The order.
    pub action: ChecksAction,
    /// The checks.
    #[serde(default, deserialize_with = "or_empty")]
    pub checks: Vec<String>,
}

/// The body of `POST /v1/signals`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SignalsBody {
    /// The signal's name.
    pub signal: String,
    /// The services.
    #[serde(default, deserialize_with = "or_empty")]
    pub services: Vec<String>,
}

/// The body of `POST /v1/exec`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ExecBody {
    /// The program and its arguments.
    #[serde(deserialize_with = "or_empty")]
    pub command: Vec<String>,
    /// The service whose account, environment and directory the command gets.
    pub service_context: Option<String>,
    /// Further variables.
    #[serde(deserialize_with = "or_empty")]
    pub environment: BTreeMap<String, String>,
    /// The working directory.
    pub working_dir: Option<String>,
    /// The time that the command may take.
    #[serde(deserialize_with = "optional")]
    pub timeout: Option<GoDuration>,
    /// The user's number.
    pub user_id: Option<u32>,
    /// The user's name.
    pub user: Option<String>,
    /// The group's number.
    pub group_id: Option<u32>,
    /// The group's name.
    pub group: Option<String>,
    /// The streams are a terminal.
    pub terminal: bool,
    /// Standard input is a terminal, too.
    pub interactive: bool,
    /// Standard error has a stream of its own.
    pub split_stderr: bool,
    /// Columns of the terminal.
    pub width: u16,
    /// Rows of the terminal.
    pub height: u16,
}

words! {
    /// A websocket of a command.
    pub enum WebsocketName {
        /// Signals, and the size of the terminal.
        Control = "control",
        /// Standard input and output.
        Stdio = "stdio",
        /// Standard error.
        Stderr = "stderr",
    }
}

/// The query of `GET /v1/notices`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NoticesQuery {
    /// Notices of all users.
    pub all_users: bool,
    /// Notices of this user, and public ones.
    pub user_id: Option<u32>,
    /// The types; all if empty.
    pub types: Vec<String>,
    /// The keys; all if empty.
    pub keys: Vec<String>,
    /// Notices that were repeated later alone.
    pub after: Option<Timestamp>,
    /// The time to wait for one.
    pub timeout: Option<Duration>,
}

/// The body of `POST /v1/notices`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NoticeBody {
    /// `add`.
    pub action: String,
    /// `custom`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The key.
    #[serde(default)]
    pub key: String,
    /// The time before which it does not repeat.
    #[serde(default, deserialize_with = "optional")]
    pub repeat_after: Option<GoDuration>,
    /// The data.
    #[serde(default, deserialize_with = "or_empty")]
    pub data: BTreeMap<String, String>,
}

/// The body of `POST /v1/identities`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct IdentitiesBody {
    /// `add`, `update`, `replace` or `remove`.
    pub action: String,
    /// The identities by name; null removes.
    #[serde(default)]
    pub identities: BTreeMap<String, Value>,
}

fn or_empty<'de, D: serde::Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum PodAnswer {
    /// A result.
    Sync(Value),
    /// A change that has begun.
    Async(ChangeId, Value),
    /// True if the pod is healthy.
    Health(bool),
    /// Metrics, in the text form of Prometheus.
    Metrics(String),
    /// A websocket is granted.
    Websocket(TaskId),
    /// Lines, and the number of the next one.
    Logs(Vec<OutputLine>, u64),
}

/// A refused request, as an HTTP status, a kind for programs if there is one, and words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PodRefusal {
    /// The HTTP status.
    pub status: u16,
    /// The kind.
    pub kind: Option<&'static str>,
    /// The error in words.
    pub message: String,
}

impl PodRefusal {
    /// Creates a refusal of a wrong request.
    #[must_use]
    pub fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, kind: None, message: message.into() }
    }

    /// Creates a refusal of a request for something that is not there.
    #[must_use]
    pub fn missing(message: impl Into<String>) -> Self {
        Self { status: 404, kind: None, message: message.into() }
    }

    /// Creates a refusal for the caller's lack of rights.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self { status: 403, kind: None, message: message.into() }
    }

    /// Creates a refusal because a bound is reached; a later try may succeed.
    #[must_use]
    pub fn busy(message: impl Into<String>) -> Self {
        Self { status: 503, kind: None, message: message.into() }
    }
}
