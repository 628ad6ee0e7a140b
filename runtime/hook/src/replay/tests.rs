use periapt_host_api::{
    Digest, Revision, Timestamp,
    event::Event,
    journal::{Confidence, HookCosts, HookOutcome, JournalRecord, Unrecorded},
};

use super::*;
use crate::{CallError, recorder::BEGIN, recorder::Recorder};

const BUDGETS: RecordedBudgets =
    RecordedBudgets { memory: 1, fuel: 2, wall_ms: 3, host_calls: 4, tmp_bytes: 5, tmp_files: 6 };

/// Returns a record of a short call, a long one, a refused one, and one with secret content.
fn recorded() -> RecordedCalls {
    let mut recorder = Recorder::new(100_000);
    recorder.record("config.get", &("a",), &Some(7));
    recorder.record("log.write", &("INFO", "x".repeat(5_000)), &());
    recorder.record("state.set", &("k",), &Err::<(), _>(CallError::NotFound("no k".to_owned())));
    recorder.record_confidential("secrets.get", &("label",), &Ok::<_, CallError>("password"));
    recorder.finish()
}

/// Makes the first calls of the record as they were made, and returns their answers.
fn make(replay: &mut Replay, number: usize) {
    if number > 0 {
        assert_eq!(replay.answer("config.get", &("a",)), Some(Some(7)));
    }
    if number > 1 {
        assert_eq!(replay.answer("log.write", &("INFO", "x".repeat(5_000))), Some(()));
    }
    if number > 2 {
        let refused = Err::<(), _>(CallError::NotFound("no k".to_owned()));
        assert_eq!(replay.answer("state.set", &("k",)), Some(refused));
    }
    if number > 3 {
        let password = Ok::<_, CallError>("password".to_owned());
        assert_eq!(replay.answer("secrets.get", &("label",)), Some(password));
    }
}

#[test]
fn the_recorded_calls_get_the_recorded_answers() {
    let mut replay = Replay::new(recorded());
    make(&mut replay, 4);
    assert_eq!(replay.finish(), ReplayedCalls { same: 4, difference: None });
}

/// Makes another call after a number of recorded ones, and returns the difference in words.
fn differing(number: usize, function: &str, argument: &str) -> String {
    let mut replay = Replay::new(recorded());
    make(&mut replay, number);
    assert_eq!(replay.answer::<_, ()>(function, &(argument,)), None);
    assert!(replay.differs());
    // The first difference stays.
    assert_eq!(replay.answer::<_, ()>("another", &()), None);
    let ReplayedCalls { same, difference } = replay.finish();
    assert_eq!(same, number as u64);
    difference.unwrap().to_string()
}

#[test]
fn another_call_shows_both() {
    assert_eq!(
        differing(0, "config.get", "b"),
        r#"call 1 was recorded as config.get ["a"], and the replay made config.get ["b"]"#
    );
    assert_eq!(
        differing(0, "state.get", "a"),
        r#"call 1 was recorded as config.get ["a"], and the replay made state.get ["a"]"#
    );
    let calls = differing(4, "config.get", "a");
    assert_eq!(calls, r#"no call 5 was recorded, and the replay made config.get ["a"]"#);
}

#[test]
fn long_arguments_are_compared_by_their_digest() {
    let mut replay = Replay::new(recorded());
    make(&mut replay, 1);
    let almost = format!("{}y", "x".repeat(4_999));
    assert_eq!(replay.answer::<_, ()>("log.write", &("INFO", almost)), None);
    let CallDifference { recorded, made, .. } = replay.finish().difference.unwrap();
    let (recorded, made) = (recorded.unwrap(), made.unwrap());
    assert!(recorded.arguments.starts_with(r#"{"digest":""#) && made.arguments.starts_with(r#"{"digest":""#));
    assert_ne!(recorded, made);
}

#[test]
fn a_difference_shows_no_secret_content() {
    let words = differing(3, "secrets.get", "my password");
    assert!(!words.contains("label") && !words.contains("my password"), "{words}");
    assert_eq!(words.matches("digest").count(), 2, "{words}");
}

#[test]
fn a_run_that_ends_before_its_record_differs() {
    let mut replay = Replay::new(recorded());
    make(&mut replay, 3);
    let difference = replay.finish().difference.unwrap();
    assert_eq!((difference.number, difference.made.is_none()), (4, true));
    assert!(difference.to_string().ends_with("and the replay made no more calls"));
}

#[test]
fn a_record_that_was_changed_is_a_difference_and_no_panic() {
    let change = |change: fn(&mut RecordedCalls)| {
        let mut calls = recorded();
        change(&mut calls);
        let mut replay = Replay::new(calls);
        let _: Option<Option<u32>> = replay.answer("config.get", &("a",));
        let _: Option<()> = replay.answer("log.write", &("INFO", "x".repeat(5_000)));
        let _: Option<Result<(), CallError>> = replay.answer("state.set", &("k",));
        let _: Option<Result<String, CallError>> = replay.answer("secrets.get", &("label",));
        replay.finish().difference.map(|difference| difference.number)
    };
    assert_eq!(change(|_| ()), None);
    assert_eq!(change(|calls| calls.calls[0].answer = 1_000), Some(1));
    assert_eq!(change(|calls| calls.answers[0] = "\"text\"".to_owned()), Some(1));
    assert_eq!(change(|calls| calls.calls.swap(0, 2)), Some(1));
    assert_eq!(change(|calls| calls.calls[1].arguments = "{}".to_owned()), Some(2));
    assert_eq!(change(|calls| calls.secrets.clear()), Some(4));
    assert_eq!(change(|calls| calls.secrets[1] = Confidence("7".to_owned())), Some(4));
    assert_eq!(change(|calls| calls.calls.truncate(3)), Some(4));
}

#[test]
fn a_request_for_a_file_is_made_again_before_the_call_of_its_tool() {
    let request = FileRequest::Write { path: "/tmp/a".to_owned(), content: "b".to_owned() };
    let mut recorder = Recorder::new(10_000);
    recorder.record_confidential(FILE, &(), &request);
    recorder.record("hook-tools.run", &("config-get",), &1);
    let mut replay = Replay::new(recorder.finish());
    assert_eq!(replay.file_request(), Some(request));
    replay.file_answered();
    assert_eq!(replay.file_request(), None);
    assert_eq!(replay.answer("hook-tools.run", &("config-get",)), Some(1));
    assert_eq!(replay.finish(), ReplayedCalls { same: 2, difference: None });
}

/// Returns a record of a run that began.
fn record(outcome: HookOutcome) -> JournalRecord {
    let mut recorder = Recorder::new(10_000);
    recorder.record(BEGIN, &BUDGETS, &Vec::<(String, String)>::new());
    let digests = (Digest::of(b""), Digest::of(b""));
    let at = Timestamp::UNIX_EPOCH;
    let record = JournalRecord::of_no_run(1, Event::Install, outcome, Revision::default(), digests, at);
    let costs = HookCosts { fuel: 1, ..HookCosts::default() };
    JournalRecord { attempt: 1, costs, calls: recorder.finish(), ..record }
}

#[test]
fn a_record_gives_the_budgets_or_the_reason_why_there_is_no_replay() {
    let failed = || HookOutcome::Failed { message: "no storage".to_owned() };
    let reason = |record: &JournalRecord| ReplayableRun::of(record).unwrap_err().to_string();
    let whole = record(HookOutcome::Handled);
    assert_eq!(ReplayableRun::of(&whole).unwrap().budgets, BUDGETS);
    assert!(ReplayableRun::of(&record(failed())).is_ok());

    assert_eq!(reason(&record(HookOutcome::Skipped)), "the hook was not run: an operator skipped it");
    assert_eq!(reason(&record(HookOutcome::Moot)), "the hook was not run: it became moot before");
    let unbegun = JournalRecord { costs: HookCosts::default(), ..record(failed()) };
    assert_eq!(reason(&unbegun), "the charm's code did not begin: no storage");

    let mut cut = whole.clone();
    (cut.calls.omitted, cut.calls.unrecorded) = (3, Unrecorded { limit: 9, ..Unrecorded::default() });
    assert_eq!(reason(&cut), "3 of its host calls were not kept (limit 9)");
    let earlier = JournalRecord { calls: recorded(), ..whole.clone() };
    assert_eq!(ReplayableRun::of(&earlier).unwrap_err(), NotReplayable::EarlierRelease);
    let mut fetched = whole;
    fetched.calls.calls[0].function = "resources.fetched".to_owned();
    fetched.calls.calls[0].arguments = r#"["image"]"#.to_owned();
    assert_eq!(
        reason(&fetched),
        "the hook read the content of resource image, which the journal does not have"
    );
}
