//! Tests of failed hooks, retry and resolve (`docs/hook-model.md` 1.9).

use periapt_host_api::{
    OperationId, Timestamp,
    command::ResolveMode,
    event::Event,
    record::{Begun, HookStep, Operation},
    settings::WorkloadCrash,
    status::AgentStatus,
};
use periapt_uniter::{Decision, HookEnd};

use crate::{World, check};

fn failing_install() -> World {
    let mut world = World::new();
    world.failing.insert("install".to_owned());
    check(&mut world, &["deploy 1", "install FAILED"]);
    world
}

/// Returns the seconds until the unit's next attempt; none if there is none.
fn waits(world: &World) -> Option<u64> {
    match world.decide() {
        Decision::Wait { wake_at } => {
            wake_at.map(|at: Timestamp| u64::try_from(at.as_second() - world.now.as_second()).unwrap())
        }
        other => panic!("not waiting: {other:?}"),
    }
}

#[test]
fn c01_a_failed_install_is_reported_and_nothing_else_runs() {
    let mut world = failing_install();
    world.relate("db", "b");
    world.configure("other");
    world.want_charm(2, false);
    check(&mut world, &[]);
    let status = &world.me().agent_status;
    assert_eq!(status.status, AgentStatus::Error);
    assert_eq!(status.message, "hook failed: \"install\"");
    assert_eq!(serde_json::to_string(&status.data).unwrap(), r#"{"hook":"install"}"#);
}

#[test]
fn c02_resolved_without_retry_passes_over_install() {
    let mut world = failing_install();
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["install skipped", "leader-elected", "config-changed", "start"]);
}

#[test]
fn c03_resolved_with_retry_runs_install_again_and_reports_again() {
    let mut world = failing_install();
    world.resolved(ResolveMode::Retry);
    world.statuses.clear();
    check(&mut world, &["install FAILED"]);
    assert_eq!(world.statuses.last().unwrap(), "agent error hook failed: \"install\"");
    assert_eq!(world.me().resolved, None, "U-27: one answer serves one failure");
    check(&mut world, &[]);
}

#[test]
fn u27_the_flag_is_cleared_before_the_hook_runs() {
    let mut world = failing_install();
    world.resolved(ResolveMode::Retry);
    let Decision::Commit(progress) = world.decide() else { panic!() };
    assert!(progress.transitions.clear_resolved);
    assert!(matches!(progress.record.operation, Operation::Hook { step: HookStep::Queued, .. }));
    world.step();
    assert_eq!(world.due().attempt, 1);
}

#[test]
fn u27_an_answer_that_came_too_late_serves_no_other_failure() {
    let mut world = failing_install();
    world.advance(5);
    let run = world.due();
    world.resolved(ResolveMode::NoRetry);
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["leader-elected", "config-changed", "start"]);
    assert_eq!(world.me().resolved, None);
}

#[test]
fn c05_config_changed_passed_over_at_start_up_is_followed_by_start() {
    let mut world = World::new();
    world.failing.insert("config-changed".to_owned());
    check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed FAILED"]);
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["config-changed skipped", "start"]);
}

#[test]
fn u28_a_joined_passed_over_is_followed_by_changed() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.failing.insert("db-relation-joined".to_owned());
    check(&mut world, &["db-relation-created", "db-relation-joined b/0 FAILED"]);
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["db-relation-joined b/0 skipped", "db-relation-changed b/0"]);
}

#[test]
fn c07_the_error_of_a_joined_hook_names_relation_and_unit() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.failing.insert("db-relation-joined".to_owned());
    check(&mut world, &["db-relation-created", "db-relation-joined b/0 FAILED"]);
    let data = serde_json::to_string(&world.me().agent_status.data).unwrap();
    let id = world.id("db");
    assert_eq!(data, format!(r#"{{"hook":"db-relation-joined","relation-id":{id},"remote-unit":"b/0"}}"#));
}

#[test]
fn c08_the_error_of_a_broken_hook_names_the_relation_alone() {
    let mut world = World::started();
    world.relate_across("db", "b");
    world.failing.insert("db-relation-broken".to_owned());
    check(&mut world, &["db-relation-created"]);
    world.suspend("b", true);
    check(&mut world, &["db-relation-broken FAILED"]);
    let data = serde_json::to_string(&world.me().agent_status.data).unwrap();
    let id = world.id("db");
    assert_eq!(data, format!(r#"{{"hook":"db-relation-broken","relation-id":{id}}}"#));
    assert!(world.is_member("db"), "a failed hook leaves no scope");
}

#[test]
fn c09_a_failed_hook_is_tried_again_ever_later() {
    let mut world = failing_install();
    for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
        assert_eq!(waits(&world), Some(seconds));
        world.advance(seconds - 1);
        check(&mut world, &[]);
        world.advance(1);
        check(&mut world, &["install FAILED"]);
    }
    world.failing.clear();
    world.advance(300);
    assert_eq!(world.due().attempt, 10);
    check(&mut world, &["install", "leader-elected", "config-changed", "start"]);
}

#[test]
fn c10_without_automatic_retry_a_failed_hook_waits_for_ever() {
    let mut world = World::new();
    world.without_retries();
    world.failing.insert("install".to_owned());
    check(&mut world, &["deploy 1", "install FAILED"]);
    assert_eq!(waits(&world), None);
    world.advance(1_000_000);
    check(&mut world, &[]);
    world.configure_model("automatically-retry-hooks", "true");
    check(&mut world, &["install FAILED"]);
}

#[test]
fn c11_either_answer_starts_the_back_off_over() {
    for mode in [ResolveMode::Retry, ResolveMode::NoRetry] {
        let mut world = failing_install();
        world.failing.insert("leader-elected".to_owned());
        world.advance(5);
        check(&mut world, &["install FAILED"]);
        assert_eq!(waits(&world), Some(10));
        world.resolved(mode);
        world.settle();
        assert_eq!(waits(&world), Some(5), "{mode:?}");
    }
}

#[test]
fn c11_success_starts_the_back_off_over() {
    let mut world = failing_install();
    world.failing.clear();
    world.failing.insert("config-changed".to_owned());
    world.advance(5);
    check(&mut world, &["install", "leader-elected", "config-changed FAILED"]);
    assert_eq!(waits(&world), Some(5));
}

#[test]
fn c12_update_status_does_not_run_while_a_hook_has_failed() {
    let mut world = World::started();
    world.without_retries();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.advance(10_000);
    check(&mut world, &[]);
}

#[test]
fn c14_a_dying_unit_in_error_is_not_torn_down_before_it_is_fixed() {
    let mut world = World::started();
    world.without_retries();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.die();
    check(&mut world, &[]);
    world.failing.clear();
    world.resolved(ResolveMode::Retry);
    assert_eq!(check(&mut world, &["config-changed", "stop", "remove"]), Decision::Stop);
}

#[test]
fn u30_a_joined_is_tried_again_after_its_unit_left() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.failing.insert("db-relation-joined".to_owned());
    check(&mut world, &["db-relation-created", "db-relation-joined b/0 FAILED"]);
    world.leave("db", "b/0");
    world.failing.clear();
    world.advance(5);
    check(&mut world, &["db-relation-joined b/0", "db-relation-changed b/0", "db-relation-departed b/0"]);
}

#[test]
fn u16_a_failed_hook_of_a_relation_that_was_removed_by_force_is_passed_over_at_once() {
    for (hook, before, after) in [
        ("db-relation-created", [].as_slice(), [].as_slice()),
        ("db-relation-joined b/0", &["db-relation-created"], &["db-relation-broken"]),
        (
            "db-relation-changed b/0",
            &["db-relation-created", "db-relation-joined b/0"],
            &["db-relation-departed b/0", "db-relation-broken"],
        ),
    ] {
        // This holds with and without automatic retries.
        for automatically in ["true", "false"] {
            let mut world = World::started();
            world.configure_model("automatically-retry-hooks", automatically);
            world.relate("db", "b");
            world.join("db", "b/0");
            world.failing.insert(hook.split(' ').next().unwrap().to_owned());
            let failed = format!("{hook} FAILED");
            check(&mut world, &[before, &[&failed]].concat());
            world.remove_by_force("db");
            let skipped = format!("{hook} skipped");
            let rest = check(&mut world, &[&[skipped.as_str()], after].concat());
            assert!(matches!(rest, Decision::Idle { .. }), "{rest:?}");
            assert!(world.record().relations.is_empty());
        }
    }
}

#[test]
fn u16_an_answer_to_a_failed_hook_of_a_relation_that_is_gone_tells_of_no_member() {
    for mode in [ResolveMode::Retry, ResolveMode::NoRetry] {
        let mut world = World::started();
        world.relate("db", "b");
        world.join("db", "b/0");
        world.failing.insert("db-relation-joined".to_owned());
        check(&mut world, &["db-relation-created", "db-relation-joined b/0 FAILED"]);
        world.resolved(mode);
        world.remove_by_force("db");
        check(&mut world, &["db-relation-joined b/0 skipped", "db-relation-broken"]);
        assert_eq!(world.me().resolved, None, "{mode:?}");
    }
}

#[test]
fn a_failed_departed_of_a_relation_that_was_removed_by_force_is_still_owed() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.settle();
    world.take_trace();
    world.failing.insert("db-relation-departed".to_owned());
    world.remove_by_force("db");
    check(&mut world, &["db-relation-departed b/0 FAILED"]);
    world.failing.clear();
    world.advance(5);
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
}

#[test]
fn what_a_failed_hook_was_about_is_not_marked_as_seen() {
    let mut world = World::started();
    let before = world.record().clone();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    assert_eq!(world.record().seen, before.seen);
}

#[test]
fn a_hook_that_was_cut_short_beside_workloads_fails_only_if_nothing_came_after_it() {
    let begun = |beside_workloads| Begun {
        event: Event::ConfigChanged,
        attempt: 3,
        operation: OperationId(7),
        beside_workloads,
    };
    let queued = |event| Operation::Hook { event, step: HookStep::Queued };
    let check = |crash, begun, operation, fails: Option<u32>| {
        let mut world = World::started();
        let unit = world.unit.clone();
        world.view.applications.get_mut(unit.application()).unwrap().workload_crash = crash;
        let record = &mut world.view.units.get_mut(&unit).unwrap().record;
        (record.begun, record.operation) = (Some(begun), operation);
        let failed = match world.decide() {
            Decision::Commit(progress) => match progress.record.operation {
                Operation::Hook { event: Event::ConfigChanged, step: HookStep::Failed(failure) } => {
                    let begun = progress.record.begun.unwrap();
                    assert!(failure.cut_short && !begun.beside_workloads && begun.attempt == 3);
                    assert_eq!(begun.operation.0, progress.record.seq, "the next attempt is a new run");
                    Some(failure.attempts)
                }
                _ => None,
            },
            _ => None,
        };
        assert_eq!(failed, fails);
    };
    let error = WorkloadCrash::Error;
    check(error, begun(true), Operation::Continue, Some(1));
    check(error, begun(true), queued(Event::ConfigChanged), Some(1));
    // The hook had failed before, and was cut short in its next attempt.
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("config-2");
    world.settle();
    check(error, begun(true), world.record().operation.clone(), Some(2));
    check(error, begun(true), queued(Event::UpgradeCharm), None);
    check(error, begun(false), Operation::Continue, None);
    check(WorkloadCrash::Retry, begun(true), Operation::Continue, None);
    check(WorkloadCrash::Retry, begun(true), queued(Event::ConfigChanged), None);
}
