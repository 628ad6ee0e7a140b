//! The state of the action that one hook run executes.

use periapt_host_api::{TaskId, action::Parameters, event::Event, view::View};
use serde_json::{Map, Value};

use crate::{HookLimits, OutputStream};

/// The outcome of an action, beside the effects that every hook has. It is committed in every case
/// (C-8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionResults {
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
    pub(super) task: TaskId,
    pub(super) parameters: Parameters,
    pub(super) values: Map<String, Value>,
    pub(super) failed: Option<String>,
    pub(super) messages: usize,
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

    pub(crate) fn finish(self) -> ActionResults {
        ActionResults {
            values: self.values,
            failed: self.failed,
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
        }
    }
}
