//! The replay of a recorded run: each call is compared with the recorded one, and answered from the record
//! (`docs/design/sandbox.md`).

mod difference;
mod run;

pub use difference::{CallDifference, ReplayedCall};
pub use run::{NotReplayable, RecordedBudgets, ReplayableRun};

use std::borrow::Cow;

use periapt_host_api::journal::{RecordedCall, RecordedCalls};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    FileRequest,
    recorder::{self, FILE, json},
};

/// The calls of a run that was replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedCalls {
    /// The number of calls that were made as recorded.
    pub same: u64,
    /// The first difference from the record.
    pub difference: Option<CallDifference>,
}

/// A record that answers the calls of a run. The first difference ends the replay.
#[derive(Debug)]
pub(crate) struct Replay {
    recorded: RecordedCalls,
    /// The index of the next call.
    next: usize,
    difference: Option<CallDifference>,
}

/// The place of a text that the record keeps apart, to be sealed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    secret: usize,
}

impl Replay {
    pub(crate) fn new(recorded: RecordedCalls) -> Self {
        Self { recorded, next: 0, difference: None }
    }

    /// Returns true if the run made another call than the recorded one.
    pub(crate) fn differs(&self) -> bool {
        self.difference.is_some()
    }

    /// Returns the recorded answer to a call. Returns none if the call, or one before it, is not the recorded one.
    pub(crate) fn answer<A: Serialize, T: DeserializeOwned>(
        &mut self,
        function: &str,
        arguments: &A,
    ) -> Option<T> {
        let arguments = json(arguments);
        self.take(function, |replay, call| match replay.arguments(call) {
            Some(Text::Secret(recorded)) => recorded == arguments,
            Some(Text::Open(recorded)) => *recorded == *recorder::short(Cow::Borrowed(arguments.as_str())),
            None => false,
        })
        .map_err(|recorded| self.differ(recorded, Some((function, arguments.as_str()))))
        .ok()
    }

    /// Returns the recorded answer to a call without a look at its arguments.
    pub(crate) fn answer_of<T: DeserializeOwned>(&mut self, function: &str) -> Option<T> {
        self.take(function, |_, _| true)
            .map_err(|recorded| self.differ(recorded, Some((function, "null"))))
            .ok()
    }

    /// Returns the request for a file that the run's tool made at this place.
    pub(crate) fn file_request(&self) -> Option<FileRequest> {
        let call = self.next_call().filter(|call| call.function == FILE && !self.differs())?;
        serde_json::from_str(self.recorded_answer(call)?).ok()
    }

    /// Passes over the request for a file that was served.
    pub(crate) fn file_answered(&mut self) {
        if self.file_request().is_some() {
            self.next += 1;
        }
    }

    pub(crate) fn finish(mut self) -> ReplayedCalls {
        if !self.differs()
            && let Some(left) = self.next_call().cloned()
        {
            self.differ(Some(left), None);
        }
        ReplayedCalls { same: u64::try_from(self.next).unwrap_or(u64::MAX), difference: self.difference }
    }

    /// Takes the answer of the next recorded call. The error is that call, if there is one.
    fn take<T: DeserializeOwned>(
        &mut self,
        function: &str,
        is_same: impl FnOnce(&Self, &RecordedCall) -> bool,
    ) -> Result<T, Option<RecordedCall>> {
        let Some(call) = self.next_call().filter(|_| !self.differs()) else { return Err(None) };
        let same = call.function == function && is_same(self, call);
        let answer = self.recorded_answer(call).filter(|_| same);
        match answer.and_then(|answer| serde_json::from_str(answer).ok()) {
            Some(answer) => {
                self.next += 1;
                Ok(answer)
            }
            None => Err(Some(call.clone())),
        }
    }

    /// Keeps the first difference.
    fn differ(&mut self, recorded: Option<RecordedCall>, made: Option<(&str, &str)>) {
        if self.differs() {
            return;
        }
        let sealed =
            recorded.as_ref().is_some_and(|call| matches!(self.arguments(call), Some(Text::Secret(_))));
        let recorded = recorded.map(|call| match self.arguments(&call) {
            Some(Text::Secret(text)) => ReplayedCall::sealed(&call.function, text),
            _ => ReplayedCall { function: call.function.clone(), arguments: call.arguments.clone() },
        });
        let made = made.map(|(function, arguments)| {
            match sealed || function.starts_with("secrets.") || arguments.contains("secret-") {
                true => ReplayedCall::sealed(function, arguments),
                false => ReplayedCall {
                    function: function.to_owned(),
                    arguments: recorder::short(Cow::Borrowed(arguments)).into_owned(),
                },
            }
        });
        let number = u64::try_from(self.next).unwrap_or(u64::MAX).saturating_add(1);
        self.difference = Some(CallDifference { number, recorded, made });
    }

    fn next_call(&self) -> Option<&RecordedCall> {
        self.recorded.calls.get(self.next)
    }

    fn arguments<'a>(&'a self, call: &'a RecordedCall) -> Option<Text<'a>> {
        self.text(&call.arguments)
    }

    fn recorded_answer<'a>(&'a self, call: &'a RecordedCall) -> Option<&'a str> {
        let answer = self.recorded.answers.get(usize::try_from(call.answer).ok()?)?;
        // An answer is apart if and only if the arguments are: an open answer may look like a place.
        match self.arguments(call)? {
            Text::Open(_) => Some(answer.as_str()),
            Text::Secret(_) => match self.text(answer)? {
                Text::Secret(text) => Some(text),
                Text::Open(_) => None,
            },
        }
    }

    /// Returns a recorded text, or the one that stands in its place. Open arguments are arrays, null, or a digest, so
    /// none looks like a place. None: the place is empty.
    fn text<'a>(&'a self, text: &'a str) -> Option<Text<'a>> {
        if !text.starts_with('{') {
            return Some(Text::Open(text));
        }
        match serde_json::from_str::<Place>(text) {
            Ok(Place { secret }) => Some(Text::Secret(&self.recorded.secrets.get(secret)?.0)),
            Err(_) => Some(Text::Open(text)),
        }
    }
}

/// A text of the record.
#[derive(Debug, Clone, Copy)]
enum Text<'a> {
    Open(&'a str),
    /// A text with secret content.
    Secret(&'a str),
}

#[cfg(test)]
mod tests;
