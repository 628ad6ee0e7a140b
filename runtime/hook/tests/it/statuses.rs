//! Statuses and the application's version.

use periapt_hook::{CallError, CharmStatus};
use periapt_host_api::{LeaderTerm, commit::EarlyEffect, status::WorkloadStatus};

use crate::world::{World, at, now, ready, status, unit};

#[test]
fn a_status_leaves_the_hook_at_once_with_its_time() {
    let mut hook = World::new().start();
    assert_eq!(hook.context.status_set(at(5), CharmStatus::Blocked, "no database"), Ok(()));
    let effect =
        EarlyEffect::UnitStatus { status: WorkloadStatus::Blocked, message: "no database".to_owned() };
    assert_eq!(hook.context.drain_early(), [(at(5).at, effect)]);
    assert_eq!(hook.context.drain_early(), []);
    assert!(hook.finish().status_set);
}

#[test]
fn the_forms_that_frameworks_use_are_taken() {
    let mut hook = World::leader().start();
    let text = "status-set --application=False maintenance -- --installing";
    hook.check(&[(text, ""), ("status-set --application=True active", ""), ("status-set waiting ''", "")]);
    let effects: Vec<_> = hook.finish().early.into_iter().map(|(_, effect)| effect).collect();
    let expected = [
        EarlyEffect::UnitStatus { status: WorkloadStatus::Maintenance, message: "--installing".to_owned() },
        EarlyEffect::ApplicationStatus {
            status: WorkloadStatus::Active,
            message: String::new(),
            term: LeaderTerm(3),
        },
        EarlyEffect::UnitStatus { status: WorkloadStatus::Waiting, message: String::new() },
    ];
    assert_eq!(effects, expected);
}

#[test]
fn o05_there_are_four_words() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        ("status-set foo", 2, "invalid status \"foo\", expected one of [maintenance blocked waiting active]"),
        (
            "status-set error",
            2,
            "invalid status \"error\", expected one of [maintenance blocked waiting active]",
        ),
        ("status-set", 2, "invalid args, require <status> [message]"),
        ("status-set active a b", 2, "unrecognized args: [\"b\"]"),
    ]);
    assert!(!hook.finish().status_set);
}

#[test]
fn o06_only_the_leader_speaks_for_the_application() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        ("status-set --application active", 1, "this unit is not the leader"),
        ("status-get --application", 1, "this unit is not the leader"),
    ]);
    let refused = ready(hook.context.status_set_application(now(), CharmStatus::Active, ""));
    assert_eq!(refused, Err(CallError::NotLeader("this unit is not the leader".to_owned())));
    assert_eq!(hook.finish().early, []);
}

#[test]
fn the_units_status_is_printed_in_each_format() {
    let mut hook = World::new().start();
    hook.check(&[
        ("status-get", "active\n"),
        ("status-get --format=json", "{\"status\":\"active\"}\n"),
        ("status-get --include-data", "message: a/0\nstatus: active\nstatus-data: {}\n"),
        ("status-set blocked why", ""),
        (
            "status-get --include-data --format=json --application=false",
            "{\"message\":\"why\",\"status\":\"blocked\",\"status-data\":{}}\n",
        ),
    ]);
    assert_eq!(hook.context.status_get().status, WorkloadStatus::Blocked);
}

#[test]
fn the_applications_status_is_derived_until_the_leader_sets_one() {
    let mut hook = World::leader().start();
    hook.check(&[
        ("status-get --application", "blocked\n"),
        (
            "status-get --application=true --include-data --format=json",
            concat!(
                "{\"application-status\":{\"message\":\"a/1\",\"status\":\"blocked\",\"status-data\":{},\"units\":{",
                "\"a/0\":{\"message\":\"a/0\",\"status\":\"active\",\"status-data\":{}},",
                "\"a/1\":{\"message\":\"a/1\",\"status\":\"blocked\",\"status-data\":{}}}}}\n"
            ),
        ),
        ("status-set blocked mine", ""),
        ("status-get --application --format=yaml", concat!(
            "application-status:\n  status: blocked\n  units:\n    a/0:\n      status: blocked\n",
            "    a/1:\n      status: blocked\n"
        )),
        ("status-set --application active", ""),
        ("status-get --application", "active\n"),
    ]);
    let typed = ready(hook.context.status_get_application(now())).unwrap();
    assert_eq!(typed.units[&unit("a/0")].message, "mine");
}

#[test]
fn what_the_leader_set_before_stands() {
    let mut world = World::leader();
    world.own_application().status = Some(status(WorkloadStatus::Waiting, "set"));
    world.start().check(&[("status-get --application", "waiting\n")]);
}

#[test]
fn the_version_is_told_at_once() {
    let mut hook = World::new().start();
    hook.check(&[("application-version-set -- 8.0.36", "")]);
    hook.check_errors(&[("application-version-set", 2, "no version specified")]);
    let early = hook.finish().early;
    assert_eq!(early, [(now().at, EarlyEffect::ApplicationVersion { version: "8.0.36".to_owned() })]);
}

#[test]
fn statuses_are_bounded_in_number_and_length() {
    let mut hook = World::new().limits(|limits| limits.statuses = 2).start();
    let long = hook.context.status_set(now(), CharmStatus::Active, &"x".repeat(4_097));
    assert!(
        matches!(&long, Err(CallError::LimitExceeded(text)) if text.contains("at most 4096")),
        "{long:?}"
    );
    hook.check(&[("status-set active", ""), ("application-version-set 1", "")]);
    hook.check_errors(&[("status-set active", 1, "a hook may set at most 2 statuses")]);
    assert_eq!(hook.finish().early.len(), 2);
}
