//! The running action: its parameters, results and messages (`docs/hook-model.md` 5.10).

mod running;

pub use running::ActionResults;
pub(crate) use running::RunningAction;

use periapt_host_api::{action::Parameters, commit::EarlyEffect};
use serde_json::{Map, Value};

use crate::{
    CallError, CallTime,
    context::{HookContext, HookRun},
};

/// The failure message of an action whose charm gives none.
const NO_REASON: &str = "action failed without reason given, check action for errors";

/// Results that the host sets itself.
const RESERVED: [&str; 4] = ["stdout", "stdout-encoding", "stderr", "stderr-encoding"];

/// The most parts that a result's key may have. It bounds the recursion of programs that print
/// results.
const MAX_DEPTH: usize = 32;

/// The typed interface: `actions`.
impl HookContext {
    /// Returns all parameters of the action.
    pub fn action_params(&mut self) -> Result<Parameters, CallError> {
        self.call("actions.params", (), |run| run.action_parameters().cloned())
    }

    /// Returns one parameter, or a part of it, by its path through objects.
    pub fn action_param(&mut self, path: &str) -> Result<Option<Value>, CallError> {
        self.call("actions.param", (path,), |run| run.action_parameter(path).map(Option::<&Value>::cloned))
    }

    /// Sets results, all or none. A key is a path through objects.
    pub fn action_set(&mut self, results: &[(String, String)]) -> Result<(), CallError> {
        self.call("actions.set-results", (results,), |run| run.set_action_results(results))
    }

    /// Sends a message to the operators that follow the action. It leaves the hook at once.
    pub fn action_log(&mut self, now: CallTime, message: &str) -> Result<(), CallError> {
        self.call("actions.log", (message,), |run| run.log_action(now, message))
    }

    /// Marks the action as failed. The last message counts.
    pub fn action_fail(&mut self, message: Option<&str>) -> Result<(), CallError> {
        self.call("actions.fail", (message,), |run| run.fail_action(message))
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
