//! Tests of charm upgrades (`docs/hook-model.md` 1.10).

use periapt_host_api::{command::ResolveMode, record::Operation, status::AgentStatus};
use periapt_uniter::{Decision, DeployKind};

use crate::{World, check};

#[test]
fn e01_a_new_charm_is_upgrade_charm_then_config_changed() {
    let mut world = World::started();
    world.want_charm(2, false);
    let Decision::Deploy(run) = world.decide() else { panic!() };
    assert_eq!(DeployKind::of(&run.record), DeployKind::Upgrade);
    check(&mut world, &["deploy 2", "upgrade-charm", "config-changed"]);
    assert_eq!(world.record().charm.unwrap().digest, world.digest(2));
}

#[test]
fn e02_a_new_resource_of_the_same_charm_is_an_upgrade() {
    let mut world = World::declaring("resources:\n  data: {type: file, filename: data}\n");
    world.settle();
    world.take_trace();
    world.attach_resource("data");
    check(&mut world, &["deploy 1", "upgrade-charm", "config-changed"]);
}

#[test]
fn e03_an_unforced_upgrade_waits_for_the_error_to_clear() {
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.want_charm(2, false);
    check(&mut world, &[]);
    world.failing.clear();
    world.resolved(ResolveMode::Retry);
    check(&mut world, &["config-changed", "deploy 2", "upgrade-charm", "config-changed"]);
}

#[test]
fn u35_a_forced_upgrade_goes_back_to_the_failed_hook_under_the_new_code() {
    for mode in [ResolveMode::Retry, ResolveMode::NoRetry] {
        let mut world = World::started();
        world.without_retries();
        world.relate("db", "b");
        world.failing.insert("db-relation-created".to_owned());
        check(&mut world, &["db-relation-created FAILED"]);
        world.want_charm(2, true);
        check(&mut world, &["deploy 2"]);
        assert_eq!(world.me().agent_status.status, AgentStatus::Error);
        world.failing.clear();
        world.resolved(mode);
        let again = match mode {
            ResolveMode::Retry => "db-relation-created",
            ResolveMode::NoRetry => "db-relation-created skipped",
        };
        check(&mut world, &[again, "config-changed"]);
    }
}

#[test]
fn u35_a_forced_upgrade_keeps_the_back_off_of_the_failed_hook() {
    let mut world = World::new();
    world.failing.insert("install".to_owned());
    check(&mut world, &["deploy 1", "install FAILED"]);
    world.want_charm(2, true);
    check(&mut world, &["deploy 2"]);
    world.failing.clear();
    world.advance(5);
    assert_eq!(world.due().attempt, 2);
    check(&mut world, &["install", "leader-elected", "config-changed", "start"]);
}

#[test]
fn e05_upgrade_charm_passed_over_is_followed_by_config_changed() {
    let mut world = World::started();
    world.failing.insert("upgrade-charm".to_owned());
    world.want_charm(2, false);
    check(&mut world, &["deploy 2", "upgrade-charm FAILED"]);
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["upgrade-charm skipped", "config-changed"]);
}

#[test]
fn e08_an_upgrade_that_fails_is_an_error_until_it_succeeds() {
    for mode in [ResolveMode::Retry, ResolveMode::NoRetry] {
        let mut world = World::started();
        world.failing.insert("deploy".to_owned());
        world.want_charm(2, false);
        check(&mut world, &["deploy 2 FAILED"]);
        let status = world.me().agent_status.clone();
        assert_eq!((status.status, status.message.as_str()), (AgentStatus::Error, "upgrade failed: no room"));
        assert_eq!(status.data["reason"], "no room");
        world.resolved(mode);
        check(&mut world, &["deploy 2 FAILED"]);
        world.failing.clear();
        world.resolved(mode);
        check(&mut world, &["deploy 2", "upgrade-charm", "config-changed"]);
        assert_eq!(world.me().resolved, None);
    }
}

#[test]
fn e08_an_upgrade_that_fails_is_tried_again_by_itself_ever_later() {
    let mut world = World::started();
    world.failing.insert("deploy".to_owned());
    world.want_charm(2, false);
    check(&mut world, &["deploy 2 FAILED"]);
    for seconds in [5, 10, 20] {
        world.advance(seconds - 1);
        check(&mut world, &[]);
        world.advance(1);
        check(&mut world, &["deploy 2 FAILED"]);
    }
}

#[test]
fn u33_a_forced_other_charm_replaces_the_one_that_failed() {
    let mut world = World::started();
    world.without_retries();
    world.failing.insert("deploy".to_owned());
    world.want_charm(2, false);
    check(&mut world, &["deploy 2 FAILED"]);
    world.want_charm(3, false);
    check(&mut world, &[]);
    world.want_charm(3, true);
    check(&mut world, &["deploy 3 FAILED"]);
    let Operation::DeployFailed { charm: failed, failure, .. } = &world.record().operation else { panic!() };
    let (failed, attempts) = (failed.digest, failure.attempts);
    assert_eq!((failed, attempts), (world.digest(3), 1));
}

#[test]
fn u33_going_back_to_the_charm_that_runs_ends_the_error() {
    let mut world = World::started();
    world.without_retries();
    world.failing.insert("deploy".to_owned());
    world.want_charm(2, false);
    check(&mut world, &["deploy 2 FAILED"]);
    world.failing.clear();
    world.want_charm(1, false);
    // This is a new refresh, to the unit's archive.
    check(&mut world, &["deploy 1", "upgrade-charm", "config-changed"]);
    assert_eq!(world.record().operation, Operation::Continue);
    assert_eq!(world.me().agent_status.status, AgentStatus::Idle);
}

#[test]
fn u35_a_forced_upgrade_that_fails_keeps_the_interrupted_hook() {
    let mut world = World::started();
    world.without_retries();
    world.failing.extend(["config-changed".to_owned(), "deploy".to_owned()]);
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.want_charm(2, true);
    check(&mut world, &["deploy 2 FAILED"]);
    world.failing.remove("deploy");
    world.resolved(ResolveMode::Retry);
    check(&mut world, &["deploy 2"]);
    assert_eq!(world.me().agent_status.message, "hook failed: \"config-changed\"");
    world.failing.clear();
    world.resolved(ResolveMode::Retry);
    check(&mut world, &["config-changed"]);
}

#[test]
fn an_upgrade_that_failed_and_a_dying_unit_wait_for_an_operator() {
    let mut world = World::started();
    world.without_retries();
    world.failing.insert("deploy".to_owned());
    world.want_charm(2, false);
    check(&mut world, &["deploy 2 FAILED"]);
    world.die();
    check(&mut world, &[]);
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["stop", "remove"]);
}
