//! The running action: its parameters, results and messages (`docs/hook-model.md` 5.10).

use periapt_host_api::{TaskId, action::Parameters, commit::EarlyEffect, event::Event, view::View};
use serde_json::{Map, Value};

use crate::{CallError, CallTime, HookLimits, OutputStream, run::HookRun};

/// The failure message of an action whose charm gives none.
const NO_REASON: &str = "action failed without reason given, check action for errors";

/// Results that the host sets itself.
const RESERVED: [&str; 4] = ["stdout", "stdout-encoding", "stderr", "stderr-encoding"];

/// The most parts that a result's key may have. It bounds the recursion of programs that print
/// results.
const MAX_DEPTH: usize = 32;

/// The outcome of an action, beside the effects that every hook has. It is committed in every case
/// (C-8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionGathered {
    /// The results that the charm set.
    pub values: Map<String, Value>,
    /// The failure message, if the charm failed the action. The last one counts.
    pub failed: Option<String>,
    /// The handler's standard output, cut at [`HookLimits::output_bytes`].
    pub stdout: String,
    /// The handler's standard error, cut at the same bound.
    pub stderr: String,
}

/// The state of the action that a run executes.
#[derive(Debug)]
pub(crate) struct RunningAction {
    task: TaskId,
    parameters: Parameters,
    values: Map<String, Value>,
    failed: Option<String>,
    messages: usize,
    stdout: Captured,
    stderr: Captured,
}

/// The first bytes of an output stream.
#[derive(Debug, Default)]
struct Captured {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Captured {
    fn push(&mut self, bytes: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.bytes.len());
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.bytes.extend_from_slice(taken);
        self.truncated |= taken.len() < bytes.len();
    }

    fn text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.truncated {
            text.push_str(&format!("\n(cut after {} bytes)\n", self.bytes.len()));
        }
        text
    }
}

impl RunningAction {
    /// Returns the action of an event. None for other events, and for a task that the view does not
    /// hold.
    pub(crate) fn of(event: &Event, view: &View) -> Option<Self> {
        let task = view.tasks.get(&event.task()?)?;
        Some(Self {
            task: task.id,
            parameters: task.parameters.clone(),
            values: Map::new(),
            failed: None,
            messages: 0,
            stdout: Captured::default(),
            stderr: Captured::default(),
        })
    }

    pub(crate) fn capture(&mut self, stream: OutputStream, bytes: &[u8], limits: &HookLimits) {
        match stream {
            OutputStream::Stdout => self.stdout.push(bytes, limits.output_bytes),
            OutputStream::Stderr => self.stderr.push(bytes, limits.output_bytes),
        }
    }

    pub(crate) fn finish(self) -> ActionGathered {
        ActionGathered {
            values: self.values,
            failed: self.failed,
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}

impl HookRun {
    fn action(&mut self) -> Result<&mut RunningAction, CallError> {
        self.action.as_mut().ok_or_else(|| CallError::WrongContext("not running an action".to_owned()))
    }

    /// Returns all parameters.
    pub(crate) fn action_parameters(&mut self) -> Result<&Parameters, CallError> {
        Ok(&self.action()?.parameters)
    }

    /// Returns one parameter, or a part of it.
    pub(crate) fn action_parameter(&mut self, path: &str) -> Result<Option<&Value>, CallError> {
        let mut object = Some(self.action_parameters()?);
        let mut value = None;
        for key in path.split('.') {
            value = object.and_then(|object| object.get(key));
            object = value.and_then(Value::as_object);
        }
        Ok(value)
    }

    /// Sets results, all or none.
    pub(crate) fn set_action_results(&mut self, results: &[(String, String)]) -> Result<(), CallError> {
        self.check_call(results.iter().map(|(key, value)| key.len() + value.len()).sum())?;
        for (key, _) in results {
            check_key(key)?;
        }
        let limit = self.limits.result_bytes;
        let action = self.action()?;
        let mut values = action.values.clone();
        for (key, value) in results {
            let path: Vec<&str> = key.split('.').collect();
            put(&mut values, &path, value);
        }
        let bytes = Value::Object(values.clone()).to_string().len();
        if bytes > limit {
            return Err(CallError::LimitExceeded(format!(
                "the action's results would take {bytes} bytes; at most {limit} are allowed"
            )));
        }
        action.values = values;
        Ok(())
    }

    /// Sends a message of the action, which leaves the hook at once.
    pub(crate) fn log_action(&mut self, now: CallTime, message: &str) -> Result<(), CallError> {
        let (line, messages) = (self.limits.log_line_bytes, self.limits.task_messages);
        let action = self.action()?;
        if message.len() > line {
            let bytes = message.len();
            return Err(CallError::LimitExceeded(format!(
                "the message is {bytes} bytes long; at most {line} are allowed"
            )));
        }
        if action.messages >= messages {
            return Err(CallError::LimitExceeded(format!("an action may send at most {messages} messages")));
        }
        let task = action.task;
        if !self.early.pay_message(message) {
            let limit = self.limits.log_bytes;
            return Err(CallError::LimitExceeded(format!("the action's log is full at {limit} bytes")));
        }
        self.action()?.messages += 1;
        self.early.push(now.at, EarlyEffect::TaskMessage { task, message: message.to_owned() });
        Ok(())
    }

    /// Marks the action as failed. The handler goes on.
    pub(crate) fn fail_action(&mut self, message: Option<&str>) -> Result<(), CallError> {
        let limit = self.limits.message_bytes;
        let message = message.unwrap_or(NO_REASON);
        let end = message.floor_char_boundary(limit);
        self.action()?.failed = Some(message.get(..end).unwrap_or_default().to_owned());
        Ok(())
    }
}

/// Checks that each part of a key consists of lower-case letters, digits and inner dashes.
pub(crate) fn check_key(key: &str) -> Result<(), CallError> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        part.bytes().all(|byte| is_letter(byte) || byte == b'-')
            && part.bytes().next().is_some_and(is_letter)
            && part.bytes().next_back().is_some_and(is_letter)
    };
    let shown = key.get(..key.floor_char_boundary(100)).unwrap_or_default();
    if !key.split('.').all(is_part) {
        return Err(CallError::invalid(format!(
            "key {shown:?} must start and end with lowercase alphanumeric, and contain only lowercase \
             alphanumeric, hyphens and periods"
        )));
    }
    if key.split('.').count() > MAX_DEPTH {
        return Err(CallError::invalid(format!("key {shown:?} leads more than {MAX_DEPTH} deep")));
    }
    if RESERVED.contains(&key.split('.').next().unwrap_or_default()) {
        return Err(CallError::invalid(format!("cannot set reserved action key {shown:?}")));
    }
    Ok(())
}

/// Puts a value at a path, and replaces any value that is no object on the way.
fn put(values: &mut Map<String, Value>, path: &[&str], value: &str) {
    match path {
        [] => {}
        [last] => {
            values.insert((*last).to_owned(), value.into());
        }
        [first, rest @ ..] => {
            let inner = values.entry(*first).or_insert(Value::Null);
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}
