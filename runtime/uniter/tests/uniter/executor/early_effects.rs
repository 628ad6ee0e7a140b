//! A running hook said something, and the controller answered what was sent of it.

use periapt_host_api::{ErrorCode, Refusal, commit::EarlyEffect, logs::LogLevel};
use periapt_uniter::executor::{ExecutorInput, Returned, SendOutcome};

use super::{bench::Bench, phase::Phase};

/// Returns the input of a line that a charm logs.
fn line(bench: &Bench) -> ExecutorInput {
    let effect = EarlyEffect::Log {
        level: LogLevel::Info,
        module: "unit.a/0.juju-log".to_owned(),
        message: "one".to_owned(),
    };
    ExecutorInput::Said(vec![(bench.timer, effect)])
}

fn answered(answer: SendOutcome) -> ExecutorInput {
    ExecutorInput::EarlyAnswered(answer)
}

#[test]
fn a_line_is_noted_at_once_and_goes_with_the_hooks_commit() {
    let mut bench = Phase::HookRuns.bench();
    bench.check(line(&bench), &["note log"]);
    let ended = bench.end(Returned::Handled);
    bench.check(ended, &["commit handled with executing, log", "wake never"]);
}

#[test]
fn a_line_of_a_long_hook_is_sent_before_its_end() {
    let mut bench = Phase::HookRuns.bench();
    bench.check(line(&bench), &["note log"]);
    bench.check_after(50, &["send executing, log", "wake never"]);
    bench.check(answered(SendOutcome::Accepted), &[]);
    let ended = bench.end(Returned::Handled);
    bench.check(ended, &["commit handled"]);
}

#[test]
fn what_is_said_while_a_batch_is_in_flight_follows_its_answer() {
    let mut bench = Phase::HookRuns.bench();
    bench.check_after(50, &["send executing", "wake never"]);
    bench.check(line(&bench), &["note log"]);
    bench.check_after(50, &[]);
    bench.check(answered(SendOutcome::Accepted), &["wake in 0 ms"]);
    bench.check_after(0, &["send log", "wake never"]);
}

#[test]
fn a_commit_follows_the_answer_to_the_effects_before_it() {
    let mut bench = Phase::CommitWaits.bench();
    bench.check(answered(SendOutcome::Unreachable), &["wake in 50 ms"]);
    bench.check_after(49, &[]);
    bench.check_after(1, &["send executing", "wake never"]);
    bench.check(answered(SendOutcome::Accepted), &["commit handled"]);
}

#[test]
fn effects_that_the_controller_refuses_hold_no_commit_up() {
    let refusal = Refusal::new(ErrorCode::QuotaExceeded, "too much");
    Phase::CommitWaits.bench().check(answered(SendOutcome::Refused(refusal)), &["commit handled"]);
}

#[test]
fn a_unit_that_is_gone_is_stopped_once_its_last_effects_are_answered() {
    let mut bench = Phase::Stopping.bench();
    bench.check(answered(SendOutcome::Unreachable), &["wake in 50 ms"]);
    bench.check_after(50, &["send executing, log, error", "wake never"]);
    bench.check(answered(SendOutcome::Accepted), &["stop"]);
}
