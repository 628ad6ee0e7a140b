//! The view comes from another store.

use periapt_uniter::executor::{ExecutorInput, Returned, SendOutcome};

use super::{
    bench::{ACCEPTED, Bench, READY, fetches},
    phase::Phase,
};

#[test]
fn a_view_of_another_store_ends_the_wait_for_a_commit() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert_eq!(
        fetches(&bench.feed(ExecutorInput::StoreReplaced)).len(),
        1,
        "config-changed is due in that one"
    );
}

#[test]
fn a_wait_for_the_cause_of_a_refusal_ends_with_the_store() {
    for phase in [Phase::Stale, Phase::Replaced, Phase::Terminated] {
        let mut bench = phase.bench();
        let commands = bench.feed(ExecutorInput::StoreReplaced);
        let texts = bench.texts(&commands);
        assert!(bench.executor.is_in_flight(), "{phase:?}: {texts:?}");
    }
}

/// The new store does not show the start of the hook, which might leave traces in storage.
#[test]
fn a_hook_with_storage_whose_start_the_new_store_lacks_does_not_run() {
    let mut bench = Bench::with_storage().after([ExecutorInput::Begin, READY, ExecutorInput::Turn, ACCEPTED]);
    bench.check(ExecutorInput::StoreReplaced, &["leave turn", "fetch charm"]);
}

#[test]
fn an_action_whose_start_the_new_store_lacks_does_not_run() {
    let mut bench = Phase::ActionQueued.bench().after([ExecutorInput::Turn, ACCEPTED]);
    bench.check(ExecutorInput::StoreReplaced, &["leave turn", "fetch charm"]);
}

#[test]
fn a_unit_that_was_refused_looks_at_the_new_store_at_once() {
    assert_eq!(fetches(&Phase::Refused.bench().feed(ExecutorInput::StoreReplaced)).len(), 1);
}

#[test]
fn a_running_action_that_the_new_store_lacks_is_interrupted() {
    let mut bench = Phase::ActionRuns.bench();
    bench.view.tasks.clear();
    bench.check(ExecutorInput::StoreReplaced, &["interrupt"]);
}

/// The answer may be one of the old store, whose record the view will never show.
#[test]
fn an_answer_after_the_store_was_replaced_is_awaited_for_a_while() {
    let mut bench = Phase::CommitSent.bench();
    bench.check(ExecutorInput::StoreReplaced, &[]);
    bench.check(ACCEPTED, &["wake in 15000 ms"]);
    bench.check_after(14_999, &[]);
    bench.check_after(1, &["leave turn", "ended", "fetch charm", "wake never"]);
}
