//! Later events, which a charm schedules for itself (decision 0017).

use std::time::Duration;

use jiff::SignedDuration;
use periapt_host_api::{
    EventId,
    command::{Command, ResolveMode},
    pending::MAX_PENDING,
};
use periapt_lab::{Action, Claims, HookRunState, Lab, invariants};

use crate::bench::{LOCAL, Related, charm, does, fails, lab, printed, refused};

/// Returns a model with a started `a/0`, without update-status, whose start hook requested an
/// event.
fn asked(line: &str) -> Lab {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.configure_model(&[("update-status-hook-interval", "0")]).unwrap();
    lab.script("a/0", "start", does(line)).unwrap();
    lab.run_until_idle().unwrap();
    lab
}

fn again_hooks(lab: &Lab) -> Vec<String> {
    let hooks = lab.hooks_of("a/0");
    hooks.into_iter().filter(|hook| hook.starts_with("again")).collect()
}

fn pending(lab: &Lab) -> usize {
    let unit = "a/0".parse().unwrap();
    lab.state().unwrap().events_of(&unit).map_or(0, |pending| pending.events.len())
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

#[test]
fn an_event_is_told_once_after_its_time() {
    let mut lab = asked("emit-later again --after 10m --data [1,2]");
    printed(&lab, "emit-later again --after 10m --data [1,2]", "0\n");
    assert_eq!(pending(&lab), 1);
    lab.advance(minutes(9)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
    lab.advance(minutes(1)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
    assert_eq!(pending(&lab), 0);
    lab.advance(minutes(60)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn a_charm_without_a_handler_lets_it_pass() {
    let mut lab = asked("emit-later again --after 1m");
    lab.script("a/0", "again", vec![Action::Unhandled]).unwrap();
    lab.advance(minutes(2)).unwrap();
    assert_eq!((again_hooks(&lab), pending(&lab)), (vec!["again".to_owned()], 0));
}

#[test]
fn a_hook_that_fails_asked_for_nothing() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    let actions = vec![Action::tool("emit-later again --after 1m"), Action::fail("out of luck")];
    lab.script("a/0", "start", actions).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(pending(&lab), 0);
    lab.unscript_all();
    lab.advance(minutes(10)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
}

#[test]
fn a_time_that_passed_while_the_agent_was_down_is_told_at_once_and_once() {
    let mut lab = asked("emit-later again --after 10m");
    lab.kill_agent("host").unwrap();
    lab.advance(minutes(120)).unwrap();
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
    lab.advance(minutes(120)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
}

#[test]
fn a_clock_that_is_set_back_loses_no_event_and_one_that_is_set_while_the_agent_runs_moves_none() {
    let mut lab = asked("emit-later again --after 10m");
    lab.set_clock(SignedDuration::from_hours(-24));
    lab.advance(minutes(9)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
    lab.advance(minutes(1)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);

    let mut lab = asked("emit-later again --after 10m");
    lab.kill_agent("host").unwrap();
    lab.set_clock(SignedDuration::from_hours(-24));
    lab.start_agent("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(again_hooks(&lab), ["again"], "nobody knows how long ago it was asked for");
}

#[test]
fn what_is_asked_for_after_the_clock_was_set_is_put_off_by_its_time() {
    for hours in [-24, 24] {
        let mut lab = asked("emit-later other --after 1s");
        lab.advance(minutes(1)).unwrap();
        lab.set_clock(SignedDuration::from_hours(hours));
        lab.script("a/0", "config-changed", does("emit-later again --after 10m")).unwrap();
        lab.configure("a", &[("colour", "blue")]).unwrap();
        lab.run_until_idle().unwrap();
        lab.advance(minutes(9)).unwrap();
        assert_eq!(again_hooks(&lab), Vec::<String>::new(), "{hours}");
        lab.advance(minutes(2)).unwrap();
        assert_eq!(again_hooks(&lab), ["again"], "{hours}");
    }
}

#[test]
fn an_option_that_changes_makes_it_due() {
    let mut lab = asked("emit-later again --when-config colour");
    lab.advance(minutes(60)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    let hooks = lab.hooks_of("a/0");
    assert_eq!(hooks[hooks.len() - 2..], ["config-changed", "again"], "after what is ordinary");
    assert_eq!(pending(&lab), 0);
}

#[test]
fn a_key_of_a_related_unit_makes_it_due() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench
        .lab
        .script("a/0", "db-relation-changed", does("emit-later again --when-relation 0:host --of b/0"))
        .unwrap();
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("port", "1")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    bench.lab.unscript_all();
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("port", "2")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("host", "h")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0", "again"]);
}

#[test]
fn a_relation_that_ends_ends_the_waiting() {
    let mut bench = Related::joined(1);
    bench.lab.script("a/0", "config-changed", does("emit-later again --when-relation 0:host")).unwrap();
    bench.lab.configure("a", &[("colour", "blue")]).unwrap();
    assert_eq!(bench.news(), ["config-changed"]);
    bench.lab.remove_relation(bench.relation).unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0", "db-relation-broken", "again"]);
}

/// Returns a model with `a/0`, which leads and has requested an event on a change of leader, and
/// `a/1` on another host.
fn led() -> Lab {
    let mut lab = lab();
    lab.add_agent("far").unwrap();
    lab.deploy_to("a", &charm(LOCAL), 1, "host").unwrap();
    lab.script("a/0", "start", does("emit-later again --when-leader")).unwrap();
    lab.run_until_idle().unwrap();
    lab.command(&Command::AddUnits {
        application: "a".parse().unwrap(),
        count: 1,
        placement: vec![periapt_host_api::command::Placement::Agent("far".parse().unwrap())],
        attach_storage: vec![],
    })
    .unwrap();
    lab.run_until_idle().unwrap();
    lab
}

#[test]
fn another_leader_makes_it_due() {
    let mut lab = led();
    lab.cut_off("host").unwrap();
    lab.advance(minutes(3)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
    lab.reconnect("host").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
}

#[test]
fn an_application_that_nobody_leads_for_a_while_makes_nothing_due() {
    let mut lab = led();
    for agent in ["host", "far"] {
        lab.set_claims(agent, Claims::Unsent).unwrap();
    }
    lab.advance(minutes(3)).unwrap();
    let leader = lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().leader.clone();
    assert_eq!(leader, None);
    assert_eq!(again_hooks(&lab), Vec::<String>::new());
    lab.set_claims("host", Claims::Answered).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!((again_hooks(&lab), pending(&lab)), (Vec::new(), 1), "the same unit leads again");
}

#[test]
fn an_operator_takes_an_event_back_even_if_its_hook_has_failed() {
    let mut lab = asked("emit-later again --after 10m");
    let cancel = |event| Command::CancelEvent { unit: "a/0".parse().unwrap(), event: EventId(event) };
    assert!(lab.command(&cancel(1)).unwrap_err().to_string().contains("waits for no event 1"));
    lab.command(&cancel(0)).unwrap();
    lab.advance(minutes(20)).unwrap();
    assert_eq!(again_hooks(&lab), Vec::<String>::new());

    let mut lab = asked("emit-later again --after 10m");
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "again", fails()).unwrap();
    lab.advance(minutes(20)).unwrap();
    assert_eq!(lab.trace().last().unwrap().state, HookRunState::Failed);
    lab.command(&cancel(0)).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.trace().last().unwrap().state, HookRunState::Moot);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn resolved_without_a_retry_says_that_it_was_told() {
    let mut lab = asked("emit-later again --after 1m");
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.script("a/0", "again", fails()).unwrap();
    lab.advance(minutes(2)).unwrap();
    assert_eq!(pending(&lab), 1);
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(pending(&lab), 0);
    lab.advance(minutes(20)).unwrap();
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn a_runner_that_dies_under_it_tells_it_again_and_its_end_is_the_end() {
    let mut lab = asked("emit-later again --after 1m");
    lab.hold("a/0").unwrap();
    lab.advance(minutes(2)).unwrap();
    lab.release("a/0").unwrap();
    assert!(lab.start_hook("a/0").unwrap());
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    let states: Vec<HookRunState> = lab
        .trace()
        .iter()
        .filter(|traced| traced.event.custom().is_some())
        .map(|traced| traced.state)
        .collect();
    assert_eq!(states, [HookRunState::Lost, HookRunState::Committed]);
    lab.advance(minutes(20)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);
}

#[test]
fn it_dies_with_its_unit_and_goes_along_when_the_unit_moves() {
    let mut lab = asked("emit-later again --after 10m");
    lab.unscript_all();
    lab.add_agent("far").unwrap();
    lab.move_machine_of("a/0", "far").unwrap();
    lab.advance(minutes(10)).unwrap();
    assert_eq!(again_hooks(&lab), ["again"]);

    let mut lab = asked("emit-later again --after 10m");
    lab.remove_unit("a/0").unwrap();
    lab.advance(minutes(20)).unwrap();
    assert_eq!((again_hooks(&lab), pending(&lab)), (Vec::new(), 0));
    assert_eq!(lab.state().unwrap().units_with_events().count(), 0);
}

#[test]
fn a_unit_waits_for_a_bounded_number() {
    let mut lab = lab();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    let ask = |_| Action::attempt("emit-later again --after 1h");
    lab.script("a/0", "start", (0..=MAX_PENDING).map(ask).collect()).unwrap();
    lab.run_until_idle().unwrap();
    refused(&lab, "emit-later again --after 1h", 1, "waits for 64 events");
    assert_eq!(pending(&lab), MAX_PENDING);
    lab.advance(minutes(61)).unwrap();
    assert_eq!(again_hooks(&lab).len(), MAX_PENDING);
}

#[test]
fn numbers_are_never_used_again() {
    let mut lab = asked("emit-later again --after 1m");
    lab.script("a/0", "again", does("emit-later again --after 1m")).unwrap();
    lab.advance(Duration::from_secs(190)).unwrap();
    let ids: Vec<EventId> = lab.trace().iter().filter_map(|traced| traced.event.custom()).collect();
    assert_eq!(ids, [EventId(0), EventId(1), EventId(2)]);
}
