//! The driver starts to manage the unit.

use periapt_host_api::{command::ResolveMode, event::Event, exec, status::AgentStatus};
use periapt_uniter::{
    ListeningWorkload,
    executor::{ExecutorCommand, ExecutorInput},
};

use super::{
    bench::{ACCEPTED, Bench, UNREACHABLE, commit},
    phase::Phase,
};
use crate::World;

#[test]
fn a_unit_at_rest_tells_what_it_waits_for() {
    Bench::of(&World::started()).check(ExecutorInput::Begin, &["wake at 300 s", "depend"]);
}

#[test]
fn a_due_hook_begins_with_its_charm() {
    Bench::configured().check(ExecutorInput::Begin, &["fetch charm", "depend"]);
}

#[test]
fn a_script_of_an_operator_waits_for_no_charm() {
    let mut bench = Bench::with_task();
    bench.task().action = exec::ACTION.to_owned();
    bench.check(ExecutorInput::Begin, &["take turn in group disk", "depend"]);
}

#[test]
fn a_step_without_a_hook_is_committed_at_once() {
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("config-2");
    world.settle();
    world.resolved(ResolveMode::NoRetry);
    Bench::of(&world).check(ExecutorInput::Begin, &["commit skipped"]);
}

#[test]
fn a_unit_that_is_not_in_the_view_is_stopped() {
    let mut bench = Bench::of(&World::started());
    bench.leave_model();
    bench.check(ExecutorInput::Begin, &["stop"]);
}

#[test]
fn an_idle_unit_says_so_once_if_its_status_does_not() {
    let mut bench = Bench::of(&World::started());
    bench.agent_status(AgentStatus::Executing);
    bench.check(ExecutorInput::Begin, &["note idle", "wake at 300 s or in 50 ms", "depend"]);
    bench.check(ExecutorInput::DependenciesChanged, &[]);
    bench.check_after(50, &["send idle", "wake at 300 s"]);
}

#[test]
fn a_failure_that_another_status_hides_is_told_once() {
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("config-2");
    world.settle();
    let mut bench = Bench::of(&world);
    bench.agent_status(AgentStatus::Failed);
    bench.check(ExecutorInput::Begin, &["note error", "wake at 5 s or in 50 ms", "depend"]);
    bench.check(ExecutorInput::DependenciesChanged, &[]);
}

#[test]
fn a_hook_beside_workloads_runs_once_its_start_is_on_record() {
    let runs = |commands: &[ExecutorCommand]| {
        commands
            .iter()
            .any(|command| matches!(command, ExecutorCommand::Started(_) | ExecutorCommand::Run(_)))
    };
    let mut bench = Phase::HookQueued.bench();
    let workloads = [("web".parse().unwrap(), ListeningWorkload::default())].into();
    bench.feed(ExecutorInput::Workloads(workloads));
    let commands = bench.feed_one(ExecutorInput::Turn);
    let start = commit(&commands).clone();
    let begun = start.record.begun.as_ref().unwrap();
    assert_eq!((&begun.event, begun.attempt, begun.beside_workloads), (&Event::ConfigChanged, 1, true));
    assert!(!runs(&commands), "it is not answered");
    assert!(!runs(&bench.feed_one(UNREACHABLE)), "it may be lost");
    let commands = bench.pass(60_000);
    assert_eq!(commit(&commands), &start, "it is sent again");
    assert!(!runs(&commands));
    assert!(!runs(&bench.feed_one(ACCEPTED)), "the view does not show it");
    bench.show(&start);
    let commands = bench.feed_one(ExecutorInput::DependenciesChanged);
    let run = commands.iter().find_map(|command| match command {
        ExecutorCommand::Run(run) => Some(run),
        _ => None,
    });
    assert!(run.unwrap().run.may_reach_workloads());
}

#[test]
fn a_hook_that_begins_before_any_workload_listens_reaches_none_and_an_action_does() {
    let mut bench = Bench::configured();
    assert!(!bench.run().run.may_reach_workloads());
    let mut bench = Bench::with_task();
    assert!(bench.run().run.may_reach_workloads());
}
