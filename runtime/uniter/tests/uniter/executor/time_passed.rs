//! A time came.

use std::time::Duration;

use periapt_host_api::ErrorCode;
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned};

use super::{
    bench::{Bench, is_quiet},
    phase::Phase,
};

#[test]
fn a_runner_whose_commits_stay_stale_is_not_the_units_any_more() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.refuse(ErrorCode::Stale);
    assert!(is_quiet(&bench.pass(14_999)));
    assert!(bench.pass(1).iter().any(|command| matches!(command, ExecutorCommand::Revoked)));
}

#[test]
fn a_failed_hook_is_tried_again_when_its_time_has_come() {
    let mut bench = Phase::Retrying.bench();
    let at = bench.wake.at.unwrap();
    bench.timer = at - Duration::from_millis(1);
    bench.check(ExecutorInput::Woken, &[]);
    bench.timer = at;
    bench.check(ExecutorInput::Woken, &["fetch charm", "wake never"]);
}

#[test]
fn a_charm_that_is_away_is_requested_again() {
    let mut bench = Phase::CharmAway.bench();
    bench.check_after(99, &[]);
    bench.check_after(1, &["fetch charm", "wake never"]);
    bench.check_after(1_000, &[]);
}

#[test]
fn a_lost_commit_is_sent_again_once_for_each_wait() {
    let mut bench = Phase::CommitLost.bench();
    bench.check_after(49, &[]);
    bench.check_after(1, &["commit handled with executing", "wake never"]);
    bench.check_after(1_000, &[]);
}

#[test]
fn a_refused_unit_looks_again_after_a_wait() {
    let mut bench = Phase::Refused.bench();
    bench.check_after(50, &["send executing, log, error", "wake in 150 ms"]);
    bench.check_after(149, &[]);
    bench.check_after(1, &["fetch charm", "wake never", "depend"]);
}

#[test]
fn a_unit_whose_last_commit_stays_refused_sends_it_again() {
    let mut bench = Phase::Terminated.bench();
    bench.check_after(14_999, &[]);
    bench.check_after(1, &["wake in 200 ms", "depend"]);
    bench.check_after(200, &["commit termination", "wake never"]);
}
