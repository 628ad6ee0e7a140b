use periapt_hook::{CallDifference, ReplayedCall};
use periapt_host_api::{Digest, Revision, TaskId, Timestamp, event::Event};

use super::*;

const BUDGETS: RecordedBudgets =
    RecordedBudgets { memory: 1, fuel: 1_000, wall_ms: 10, host_calls: 100, tmp_bytes: 0, tmp_files: 0 };

fn failed(message: &str) -> HookOutcome {
    HookOutcome::Failed { message: message.to_owned() }
}

fn costs(fuel: u64) -> HookCosts {
    HookCosts { fuel, host_calls: 7, ..HookCosts::default() }
}

fn record(event: Event, outcome: HookOutcome) -> JournalRecord {
    let digests = (Digest::of(b""), Digest::of(b""));
    let record =
        JournalRecord::of_no_run(1, event, outcome, Revision::default(), digests, Timestamp::UNIX_EPOCH);
    JournalRecord { attempt: 1, engine: "engine 1".to_owned(), costs: costs(500), ..record }
}

fn ran(outcome: HookOutcome) -> ReplayedRun {
    ReplayedRun { outcome, costs: costs(500), calls: ReplayedCalls { same: 3, difference: None } }
}

fn call() -> ReplayedCall {
    ReplayedCall { function: "config.get".to_owned(), arguments: "[\"a\"]".to_owned() }
}

/// Returns the difference in words, and the number of notes.
fn check(record: &JournalRecord, ran: &ReplayedRun, engine: &str) -> (Option<String>, usize) {
    let mut notes = Vec::new();
    let difference = compare(record, &BUDGETS, ran, engine, &mut notes);
    (difference.map(|difference| difference.to_string()), notes.len())
}

#[test]
fn a_run_with_the_same_outcome_and_costs_is_the_same() {
    for outcome in [HookOutcome::Handled, HookOutcome::Unhandled, failed("no")] {
        let record = record(Event::Install, outcome.clone());
        assert_eq!(check(&record, &ran(outcome), "engine 1"), (None, 0));
    }
}

#[test]
fn another_outcome_is_a_difference_in_both_directions() {
    let handled = record(Event::Install, HookOutcome::Handled);
    let (difference, _) = check(&handled, &ran(failed("no")), "engine 1");
    assert_eq!(difference.as_deref(), Some("the outcome was ok, and the replay's is failed (no)"));
    let broken = record(Event::Install, failed("no"));
    assert!(check(&broken, &ran(HookOutcome::Handled), "engine 1").0.is_some());
    assert!(check(&broken, &ran(failed("other")), "engine 1").0.is_some());
}

#[test]
fn fuel_is_compared_on_the_same_engine_alone() {
    let record = record(Event::Install, HookOutcome::Handled);
    let other = ReplayedRun { costs: costs(501), ..ran(HookOutcome::Handled) };
    let (difference, _) = check(&record, &other, "engine 1");
    assert_eq!(difference.as_deref(), Some("the hook used 500 fuel, and the replay used 501"));
    assert_eq!(check(&record, &other, "engine 2"), (None, 1));
}

#[test]
fn the_number_of_host_calls_is_compared() {
    let record = record(Event::Install, HookOutcome::Handled);
    let more = HookCosts { host_calls: 8, ..costs(500) };
    let (difference, _) =
        check(&record, &ReplayedRun { costs: more, ..ran(HookOutcome::Handled) }, "engine 1");
    assert_eq!(difference.as_deref(), Some("the hook made 7 host calls, and the replay made 8"));
}

#[test]
fn effects_that_the_controller_refused_are_no_difference_of_the_run() {
    let refused = record(Event::Install, failed("the hook's effects were refused: too large"));
    assert_eq!(check(&refused, &ran(HookOutcome::Handled), "engine 1"), (None, 1));
    let event = Event::Action { name: "backup".to_owned(), task: TaskId(4) };
    let refused = record(event.clone(), failed("committing requested changes failed"));
    assert_eq!(check(&refused, &ran(HookOutcome::Handled), "engine 1"), (None, 1));
    // The charm's own message stands in the record of an action.
    let said = record(event, failed("disk full"));
    assert_eq!(check(&said, &ran(failed("failed with code 1")), "engine 1"), (None, 0));
}

#[test]
fn of_a_run_that_was_cut_off_the_recorded_calls_are_compared() {
    let beyond = CallDifference { number: 4, recorded: None, made: Some(call()) };
    let calls = ReplayedCalls { same: 3, difference: Some(beyond) };
    let further = ReplayedRun { calls, ..ran(HookOutcome::Handled) };
    let stopped = record(Event::Install, failed("it was stopped"));
    assert_eq!(check(&stopped, &further, "engine 1"), (None, 1));
    let timed_out = HookCosts { wall_us: 10_000, ..costs(500) };
    let timed_out = JournalRecord { costs: timed_out, ..record(Event::Install, failed("timed out")) };
    assert_eq!(check(&timed_out, &further, "engine 1"), (None, 1));
    // A run that ended by itself has no further calls, and a call within the record counts in any case.
    assert!(check(&record(Event::Install, HookOutcome::Handled), &further, "engine 1").0.is_some());
    let within = CallDifference { number: 2, recorded: Some(call()), made: Some(call()) };
    let calls = ReplayedCalls { same: 1, difference: Some(within) };
    assert!(check(&stopped, &ReplayedRun { calls, ..further }, "engine 1").0.is_some());
}
