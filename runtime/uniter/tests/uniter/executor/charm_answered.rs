//! The driver answered a request for a charm.

use periapt_host_api::status::AgentStatus;
use periapt_uniter::executor::{CharmAnswer, ExecutorInput};

use super::{
    bench::{Bench, READY, agent_says, away, fetches, unusable},
    phase::Phase,
};
use crate::World;

#[test]
fn a_charm_that_stays_away_is_told_of_after_three_seconds_once_and_taken_back() {
    let mut bench = Bench::configured();
    bench.feed(ExecutorInput::Begin);
    let mut waited = 0;
    let mut told = Vec::new();
    while waited < 10_000 {
        let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Away("it is damaged".to_owned())));
        if !agent_says(&commands).is_empty() {
            told.push(waited);
        }
        loop {
            let wait = u64::try_from((bench.wake.after.unwrap() - bench.steady).as_millis()).unwrap();
            waited += wait;
            if fetches(&bench.pass(wait)).len() == 1 {
                break;
            }
        }
    }
    assert!(matches!(told[..], [at] if (3_000..5_100).contains(&at)), "{told:?}");
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Ready));
    assert_eq!(agent_says(&commands), [AgentStatus::Idle], "as it was before");
}

#[test]
fn a_hook_whose_charm_is_ready_queues_for_its_turn() {
    Phase::CharmAsked.bench().check(READY, &["take turn"]);
}

#[test]
fn a_hook_whose_charm_is_invalid_runs_so_that_its_failure_shows_the_error() {
    Phase::CharmAsked.bench().check(unusable(), &["take turn"]);
}

#[test]
fn a_charm_that_is_away_is_requested_again_later() {
    Phase::CharmAsked.bench().check(away(), &["wake in 100 ms"]);
}

#[test]
fn a_deployment_is_committed_when_its_charm_is_ready_and_fails_when_it_is_invalid() {
    let mut world = World::started();
    world.want_charm(2, false);
    let bench = || Bench::of(&world).after([ExecutorInput::Begin]);
    bench().check(READY, &["commit step"]);
    bench().check(unusable(), &["note log, error", "commit step with log, error"]);
}

#[test]
fn a_deployment_of_a_charm_that_is_not_wanted_any_more_is_dropped() {
    let mut world = World::started();
    world.want_charm(2, false);
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin]);
    world.want_charm(1, false);
    bench.view = world.view.clone();
    bench.check(READY, &["fetch charm", "depend"]);
}

#[test]
fn a_hook_that_is_not_due_any_more_when_its_charm_comes_does_not_queue() {
    let mut bench = Phase::CharmAsked.bench();
    bench.leave_model();
    bench.check(READY, &["stop", "depend"]);
}
