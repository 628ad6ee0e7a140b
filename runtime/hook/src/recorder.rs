//! The recorded host calls of a run with their answers, for the journal (`docs/design/sandbox.md`). Both
//! interfaces record here.

use std::{borrow::Cow, collections::BTreeMap};

use periapt_host_api::{
    hash,
    journal::{Confidence, RecordedCall, RecordedCalls, Unrecorded},
};
use serde::Serialize;

/// Arguments above this size in bytes are kept as their digest: a replay needs the answers, and of the
/// arguments only whether they are the same.
const ARGUMENT_BYTES: usize = 1 << 10;

/// The function of the first record of a run in the sandbox: the budgets, answered by the environment.
pub(crate) const BEGIN: &str = "run.begin";

/// The function of a tool's request for a file. The tool's own call follows.
pub(crate) const FILE: &str = "files.request";

/// Bytes of a call's record beside its texts.
const CALL_BYTES: usize = 64;

/// The most targets of streams whose unrecorded bytes are counted apart. A charm has at most 16 containers, but may
/// connect to any number of ports.
const MAX_TARGETS: usize = 32;

/// The word for all other targets. No container has a name with a space.
const OTHERS: &str = "other ports";

/// A recorder of calls up to a bound. The record is a prefix of the run: after the first call that does not
/// fit, calls are only counted.
#[derive(Debug)]
pub(crate) struct Recorder {
    recorded: RecordedCalls,
    answers: BTreeMap<String, u32>,
    /// The bound, in bytes.
    limit: usize,
    left: usize,
    /// The targets of open streams, by their numbers.
    streams: BTreeMap<u32, String>,
}

impl Recorder {
    pub(crate) fn new(bytes: usize) -> Self {
        Self {
            recorded: RecordedCalls::default(),
            answers: BTreeMap::new(),
            limit: bytes,
            left: bytes,
            streams: BTreeMap::new(),
        }
    }

    /// Notes where a stream leads. The host bounds the number of open streams.
    pub(crate) fn opened(&mut self, stream: u32, target: String) {
        self.streams.insert(stream, target);
    }

    /// Forgets a stream.
    pub(crate) fn closed(&mut self, stream: u32) {
        self.streams.remove(&stream);
    }

    /// Counts the bytes that a stream carried in the last call, if that call was not recorded.
    pub(crate) fn carried(&mut self, stream: u32, bytes: usize) {
        let Some(target) = self.streams.get(&stream).filter(|_| self.recorded.omitted > 0) else { return };
        let counted = &mut self.recorded.unrecorded.streams;
        let target = match counted.len() < MAX_TARGETS || counted.contains_key(target) {
            true => target.as_str(),
            false => OTHERS,
        };
        let sum = counted.entry(target.to_owned()).or_default();
        *sum = sum.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    pub(crate) fn record<A: Serialize, T: Serialize>(&mut self, function: &str, arguments: &A, answer: &T) {
        if self.recorded.omitted > 0 || !self.fits(function, arguments, answer) {
            self.recorded.omitted += 1;
        }
    }

    /// Records a call about secret content. Arguments and answer are kept apart, to be sealed.
    pub(crate) fn record_confidential<A: Serialize, T: Serialize>(
        &mut self,
        function: &str,
        arguments: &A,
        answer: &T,
    ) {
        // A full record takes no work.
        if self.recorded.omitted > 0 {
            self.recorded.omitted += 1;
            return;
        }
        let confidence = [json(arguments), json(answer)];
        let price = confidence.iter().map(String::len).sum::<usize>();
        let (first, Some(left)) = (self.recorded.secrets.len(), self.left.checked_sub(price)) else {
            self.recorded.omitted += 1;
            return;
        };
        let place = |index: usize| serde_json::json!({ "secret": first + index });
        if !self.fits(function, &place(0), &place(1)) {
            self.recorded.omitted += 1;
            return;
        }
        self.left = self.left.min(left);
        self.recorded.secrets.extend(confidence.map(Confidence));
    }

    pub(crate) fn finish(self) -> RecordedCalls {
        let Self { mut recorded, limit, .. } = self;
        if recorded.omitted > 0 {
            let streams = std::mem::take(&mut recorded.unrecorded.streams);
            recorded.unrecorded = Unrecorded { limit: u64::try_from(limit).unwrap_or(u64::MAX), streams };
        }
        recorded
    }

    fn fits<A: Serialize, T: Serialize>(&mut self, function: &str, arguments: &A, answer: &T) -> bool {
        let arguments = short(json(arguments).into()).into_owned();
        let answer = json(answer);
        let digest = hash::of_value(&answer);
        let known = self.answers.get(&digest).copied();
        let price = CALL_BYTES + function.len() + arguments.len() + known.map_or(answer.len(), |_| 0);
        let (Some(left), Ok(next)) =
            (self.left.checked_sub(price), u32::try_from(self.recorded.answers.len()))
        else {
            return false;
        };
        self.left = left;
        let index = known.unwrap_or_else(|| {
            self.recorded.answers.push(answer);
            self.answers.insert(digest, next);
            next
        });
        self.recorded.calls.push(RecordedCall { function: function.to_owned(), arguments, answer: index });
        true
    }
}

pub(crate) fn json<T: Serialize>(value: &T) -> String {
    // All recorded values have text keys, so they can be written. Otherwise the record holds the error.
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

/// Returns arguments as the record keeps them.
pub(crate) fn short(arguments: Cow<'_, str>) -> Cow<'_, str> {
    match arguments.len() > ARGUMENT_BYTES {
        true => digest(&arguments).into(),
        false => arguments,
    }
}

/// Returns the digest of arguments, as the record keeps it.
pub(crate) fn digest(arguments: &str) -> String {
    format!(r#"{{"digest":"{}","bytes":{}}}"#, hash::of_value(&arguments), arguments.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_answers_are_kept_once() {
        let mut recorder = Recorder::new(10_000);
        recorder.record("config.get", &("a",), &"x".repeat(500));
        recorder.record("config.get", &("b",), &"x".repeat(500));
        recorder.record("config.get", &("c",), &1);
        let recorded = recorder.finish();
        assert_eq!(recorded.answers.len(), 2);
        let answers: Vec<_> = recorded.calls.iter().map(|call| call.answer).collect();
        assert_eq!((answers, recorded.omitted), (vec![0, 0, 1], 0));
    }

    #[test]
    fn the_record_is_a_prefix_within_its_bound() {
        let mut recorder = Recorder::new(1_000);
        for size in [100, 2_000, 1] {
            recorder.record("relations.get", &(size,), &"x".repeat(size));
        }
        let recorded = recorder.finish();
        assert_eq!((recorded.calls.len(), recorded.omitted), (1, 2));
    }

    #[test]
    fn long_arguments_are_kept_as_their_digest() {
        let mut recorder = Recorder::new(10_000);
        recorder.record("log.write", &("INFO", "x".repeat(5_000)), &());
        let arguments = &recorder.finish().calls[0].arguments;
        assert!(arguments.starts_with(r#"{"digest":""#) && arguments.len() < 100, "{arguments}");
    }

    #[test]
    fn bytes_of_streams_count_once_calls_are_not_recorded_any_more() {
        let mut recorder = Recorder::new(1_000);
        recorder.opened(1, "web".to_owned());
        recorder.opened(2, "port 80".to_owned());
        for (stream, bytes) in [(1, 100), (1, 2_000), (2, 7), (1, 5), (3, 9)] {
            recorder.record_confidential("workloads.read", &(stream,), &"x".repeat(bytes));
            recorder.carried(stream, bytes);
        }
        recorder.closed(2);
        recorder.carried(2, 1_000);
        let recorded = recorder.finish();
        assert_eq!((recorded.calls.len(), recorded.omitted), (1, 4));
        let streams = [("port 80".to_owned(), 7), ("web".to_owned(), 2_005)].into();
        assert_eq!(recorded.unrecorded, Unrecorded { limit: 1_000, streams });
    }

    #[test]
    fn streams_to_any_number_of_ports_take_bounded_room() {
        let mut recorder = Recorder::new(0);
        for port in 0..1_000 {
            recorder.opened(port, format!("port {port}"));
            recorder.record("workloads.write", &port, &());
            recorder.carried(port, 3);
            recorder.closed(port);
        }
        let streams = recorder.finish().unrecorded.streams;
        assert_eq!((streams.len(), streams.values().sum::<u64>()), (MAX_TARGETS + 1, 3_000));
    }
}
