//! Leadership within one hook.

use periapt_hook::{BagSelector, CallAnswer, CharmStatus, LeaseState, OwnBag};
use periapt_host_api::LeaderTerm;

use crate::world::{DB, World, at, changed, lease, now, pairs, ready};

/// Returns the world of a leader whose lease has this many seconds left.
fn with_lease(seconds: u64) -> World {
    let mut world = World::leader();
    world.inputs.lease = lease(3, seconds);
    world
}

#[test]
fn with_less_than_the_guaranteed_time_left_the_lease_is_renewed_first() {
    let mut hook = with_lease(29).start();
    assert_eq!(hook.context.is_leader(now()), CallAnswer::NeedsLease);
    hook.context.lease_renewed(lease(3, 60));
    assert_eq!(ready(hook.context.is_leader(now())), Ok(true));
    assert_eq!(hook.context.is_leader(at(31)), CallAnswer::NeedsLease);
}

#[test]
fn a_failed_renewal_means_no() {
    let mut hook = with_lease(29).start();
    assert_eq!(hook.context.is_leader(now()), CallAnswer::NeedsLease);
    hook.context.lease_renewed(lease(3, 29));
    assert_eq!(ready(hook.context.is_leader(now())), Ok(false));
}

#[test]
fn once_no_it_stays_no_within_the_hook() {
    let mut hook = World::new().start();
    hook.check(&[("is-leader", "False\n")]);
    hook.context.lease_renewed(lease(5, 60));
    hook.check(&[("is-leader", "False\n")]);
    hook.check_errors(&[("leader-set a=1", 1, NOT_LEADER)]);
}

#[test]
fn nobody_asks_for_a_lease_that_another_unit_is_known_to_hold() {
    let mut hook = World::new().start();
    assert_eq!(ready(hook.context.is_leader(now())), Ok(false));
    let mut world = World::new();
    world.own_application().leader = None;
    assert_eq!(world.start().context.is_leader(now()), CallAnswer::NeedsLease);
}

#[test]
fn leadership_lost_and_won_again_within_a_hook_counts_as_lost() {
    let mut hook = World::leader().start();
    assert_eq!(ready(hook.context.leader_set(now(), &pairs(&[("a", "1")]))), Ok(()));
    assert_eq!(hook.context.is_leader(at(40)), CallAnswer::NeedsLease);
    hook.context.lease_renewed(lease(4, 100));
    assert_eq!(ready(hook.context.is_leader(at(40))), Ok(false));
    assert_eq!(
        hook.finish().leader_term,
        Some(LeaderTerm(3)),
        "the commit is fenced by the term that was held"
    );
}

#[test]
fn each_leader_only_call_asks_before_it_does_anything() {
    let mut hook = with_lease(1).event(changed("b/0")).start();
    let context = &mut hook.context;
    let changes = pairs(&[("a", "1")]);
    assert_eq!(context.leader_set(now(), &changes), CallAnswer::NeedsLease);
    assert_eq!(context.relation_set(now(), DB, OwnBag::Application, &changes), CallAnswer::NeedsLease);
    assert_eq!(
        context.relation_get(now(), DB, &BagSelector::Application("a".to_owned())),
        CallAnswer::NeedsLease
    );
    assert_eq!(context.status_set_application(now(), CharmStatus::Active, ""), CallAnswer::NeedsLease);
    assert_eq!(context.status_get_application(now()), CallAnswer::NeedsLease);
    for (name, arguments) in [
        ("is-leader", vec![]),
        ("leader-set", vec!["a=1"]),
        ("relation-set", vec!["--app", "a=1"]),
        ("relation-get", vec!["--app", "-", "a"]),
        ("status-set", vec!["--application", "active"]),
        ("status-get", vec!["--application"]),
    ] {
        let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
        assert_eq!(context.run_tool(now(), name, &arguments, None), CallAnswer::NeedsLease, "{name}");
    }
    let gathered = hook.finish();
    assert!(gathered.effects.is_empty() && gathered.early.is_empty() && gathered.calls.calls.is_empty());
    assert_eq!(gathered.leader_term, None);
}

#[test]
fn calls_that_need_no_leader_never_ask() {
    let mut hook = with_lease(0).event(changed("b/0")).start();
    hook.check(&[
        ("relation-get --app - b", "version: \"8\"\n"),
        ("relation-get -r 2 --app - a", "password: p\n"),
        ("relation-set a=1", ""),
        ("leader-get x", "1\n"),
        ("status-set active", ""),
    ]);
}

const NOT_LEADER: &str = "cannot write leadership settings: cannot write settings: not the leader";

#[test]
fn being_leader_alone_fences_nothing() {
    let mut hook = World::leader().event(changed("b/0")).start();
    hook.check(&[
        ("is-leader", "True\n"),
        ("relation-get --app - a", "database: wp\n"),
        ("relation-set a=1", ""),
    ]);
    assert_eq!(hook.finish().leader_term, None);
}

#[test]
fn a_lease_without_end_is_no_overflow() {
    let mut world = World::leader();
    world.inputs.lease.held.as_mut().unwrap().valid_until_ms = u64::MAX;
    let mut hook = world.start();
    let late = periapt_hook::CallTime { boot_ms: u64::MAX, ..now() };
    assert_eq!(ready(hook.context.is_leader(late)), Ok(true));
    hook.context.lease_renewed(LeaseState::default());
    assert_eq!(ready(hook.context.is_leader(now())), Ok(false));
}
