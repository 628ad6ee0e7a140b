//! Tests of start-up, crash recovery, and units of other agents (`docs/hook-model.md` 1.6, 1.8).

use periapt_host_api::{
    event::Event,
    record::{HookStep, Operation},
    status::AgentStatus,
    view::View,
};
use periapt_uniter::{Decision, HookEnd, resolve};

use crate::{World, check};

#[test]
fn a01_a_lone_leader_installs_is_elected_is_configured_and_starts() {
    let mut world = World::new();
    let rest = check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start"]);
    assert!(matches!(rest, Decision::Idle { .. }));
}

#[test]
fn a01_others_hear_of_the_leader_settings_instead() {
    let mut world = World::new();
    world.lead_by("a/1");
    check(&mut world, &["deploy 1", "install", "leader-settings-changed", "config-changed", "start"]);
}

#[test]
fn a03_relations_that_exist_are_created_after_install_and_before_leadership() {
    let mut world = World::peered();
    world.relate("db", "b");
    world.join("db", "b/0");
    check(
        &mut world,
        &[
            "deploy 1",
            "install",
            "db-relation-created",
            "ring-relation-created",
            "leader-elected",
            "config-changed",
            "start",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
        ],
    );
}

#[test]
fn a05_a_started_unit_is_idle_with_unknown_workload_status() {
    let mut world = World::started();
    check(&mut world, &[]);
    let unit = world.me();
    assert_eq!(unit.agent_status.status, AgentStatus::Idle);
    assert_eq!(unit.workload_status.status.as_str(), "unknown");
}

#[test]
fn a08_nothing_is_resolved_before_the_first_frame() {
    let decision = resolve(&View::default(), &"a/0".parse().unwrap(), World::new().now);
    assert_eq!(decision, Decision::Wait { wake_at: None });
}

#[test]
fn a08_a_unit_whose_application_is_not_in_view_waits() {
    let mut world = World::new();
    // No controller sends such a view, but the resolver must handle it.
    world.view.applications.clear();
    assert_eq!(world.decide(), Decision::Wait { wake_at: None });
}

#[test]
fn a09_a_hook_without_handler_counts_as_success() {
    let mut world = World::new();
    world.step_until(
        |world| matches!(world.decide(), Decision::RunHook(run) if run.event == Event::ConfigChanged),
    );
    let run = world.due();
    world.end(&run, HookEnd::Unhandled { status_set: false });
    assert_eq!(world.due().event, Event::Start);
}

#[test]
fn a12_a_unit_that_is_not_in_the_view_is_left_alone() {
    let world = World::started();
    let decision = resolve(&world.view, &"a/7".parse().unwrap(), world.now);
    assert_eq!(decision, Decision::Stop);
}

#[test]
fn a12_a_unit_of_a_model_that_is_gone_is_left_alone() {
    let mut world = World::started();
    world.destroy_model();
    assert_eq!(world.view.model, None);
    assert_eq!(world.decide(), Decision::Stop);
}

#[test]
fn b01_a_queued_hook_runs() {
    let mut world = World::started();
    world.want_charm(2, false);
    let upgrade = Operation::Hook { event: Event::UpgradeCharm, step: HookStep::Queued };
    world.step_until(|world| world.record().operation == upgrade);
    world.take_trace();
    check(&mut world, &["upgrade-charm", "config-changed"]);
}

#[test]
fn b01_a_run_that_was_lost_is_made_again_under_the_same_id() {
    let mut world = World::new();
    world.step();
    let lost = world.due();
    world.advance(60);
    let again = world.due();
    assert_eq!((again.event.clone(), again.operation()), (lost.event.clone(), lost.operation()));
    assert_eq!(again.attempt, 1, "B09: nothing was reported of the lost run");
}

#[test]
fn b04_a_queued_install_does_not_run_in_a_dying_unit() {
    let mut world = World::new();
    world.step();
    // The unit's agent reported the run and died. Without that report, the unit would be removed at once
    // (L-1).
    let install = world.due();
    assert_eq!(install.event, Event::Install);
    world.begin(&install);
    world.take_trace();
    world.die();
    assert_eq!(check(&mut world, &[]), Decision::Stop);
}

#[test]
fn u40_a_unit_that_dies_before_its_charm_came_runs_nothing() {
    let mut world = World::new();
    world.failing.insert("deploy".to_owned());
    check(&mut world, &["deploy 1 FAILED"]);
    world.die();
    assert_eq!(check(&mut world, &[]), Decision::Stop);
}

#[test]
fn b05_a_charm_that_is_replaced_while_it_is_fetched_gives_way_to_the_newest() {
    let mut world = World::started();
    world.want_charm(2, false);
    let Decision::Deploy(fetching) = world.decide() else { panic!() };
    assert_eq!(fetching.charm.digest, world.digest(2));
    world.want_charm(3, false);
    check(&mut world, &["deploy 3", "upgrade-charm", "config-changed"]);
}

#[test]
fn b05_a_first_charm_that_fails_gives_way_to_the_newest() {
    let mut world = World::new();
    world.failing.insert("deploy".to_owned());
    check(&mut world, &["deploy 1 FAILED"]);
    world.failing.clear();
    world.want_charm(2, false);
    check(&mut world, &["deploy 2", "install", "leader-elected", "config-changed", "start"]);
}

#[test]
fn b06_a_unit_without_a_record_begins_with_its_applications_present_charm() {
    let mut world = World::new();
    world.want_charm(5, false);
    assert_eq!(*world.record(), Default::default());
    check(&mut world, &["deploy 5", "install", "leader-elected", "config-changed", "start"]);
    assert_eq!(world.record().charm.unwrap().digest, world.digest(5));
}

#[test]
fn u24_nothing_comes_between_the_first_config_changed_and_start() {
    let mut world = World::new();
    let start = Operation::Hook { event: Event::Start, step: HookStep::Queued };
    world.step_until(|world| world.record().operation == start);
    world.take_trace();
    world.relate("db", "b");
    world.configure("other");
    world.want_charm(2, false);
    world.lead_by("a/1");
    check(
        &mut world,
        &[
            "start",
            "db-relation-created",
            "leader-settings-changed",
            "deploy 2",
            "upgrade-charm",
            "config-changed",
        ],
    );
}

#[test]
fn d08_a_started_unit_starts_once_after_a_reboot_of_its_host() {
    let mut world = World::started();
    let before = world.record().boot_id.clone();
    world.reboot();
    check(&mut world, &["start"]);
    check(&mut world, &[]);
    assert!(world.record().boot_id.is_some() && world.record().boot_id != before);
}

#[test]
fn u43_a_reboot_before_start_is_no_event() {
    let mut world = World::new();
    world.step_until(|world| world.record().charm.is_some());
    world.reboot();
    check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start"]);
}

#[test]
fn u43_a_reboot_waits_for_the_hook_in_progress() {
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.reboot();
    check(&mut world, &[]);
    world.failing.clear();
    world.advance(10);
    check(&mut world, &["config-changed", "start"]);
}

#[test]
fn a_host_whose_boot_is_unknown_did_not_reboot() {
    let mut world = World::started();
    // The controller shows a machine with an unknown host without a boot id.
    let machine = *world.view.machines.keys().next().unwrap();
    world.view.machines.get_mut(&machine).unwrap().boot_id.clear();
    check(&mut world, &[]);
    world.view.machines.clear();
    check(&mut world, &[]);
}

#[test]
fn c15_a_dead_unit_is_left_alone_whatever_was_in_progress() {
    let mut world = World::new();
    world.failing.insert("install".to_owned());
    check(&mut world, &["deploy 1", "install FAILED"]);
    world.die_by_force();
    world.advance(1000);
    assert_eq!(check(&mut world, &[]), Decision::Stop);
}
