//! The recorded host calls of a run with their answers, for the journal (`docs/design/sandbox.md`). Both
//! interfaces record here.

use std::collections::BTreeMap;

use periapt_host_api::{
    hash,
    journal::{Confidence, RecordedCall, RecordedCalls},
};
use serde::Serialize;

/// Arguments above this size in bytes are kept as their digest: a replay needs the answers, and of the
/// arguments only whether they are the same.
const ARGUMENT_BYTES: usize = 1 << 10;

/// Bytes of a call's record beside its texts.
const CALL_BYTES: usize = 64;

/// A recorder of calls up to a bound. The record is a prefix of the run: after the first call that does not
/// fit, calls are only counted.
#[derive(Debug)]
pub(crate) struct Recorder {
    recorded: RecordedCalls,
    answers: BTreeMap<String, u32>,
    left: usize,
}

impl Recorder {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { recorded: RecordedCalls::default(), answers: BTreeMap::new(), left: bytes }
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
        self.recorded
    }

    fn fits<A: Serialize, T: Serialize>(&mut self, function: &str, arguments: &A, answer: &T) -> bool {
        let arguments = short(json(arguments));
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

fn json<T: Serialize>(value: &T) -> String {
    // All recorded values have text keys, so they can be written. Otherwise the record holds the error.
    serde_json::to_string(value).unwrap_or_else(|error| error.to_string())
}

fn short(arguments: String) -> String {
    match arguments.len() > ARGUMENT_BYTES {
        true => format!(r#"{{"digest":"{}","bytes":{}}}"#, hash::of_value(&arguments), arguments.len()),
        false => arguments,
    }
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
}
