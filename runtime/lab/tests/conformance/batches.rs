//! Charms that ask for batches: one hook for all changes among a relation's members (decision 0016).

use periapt_host_api::{
    command::{Command, ResolveMode},
    event::Event,
};
use periapt_lab::{Action, HookRunState, Lab, invariants};
use periapt_model::RecordBody;

use crate::bench::{REMOTE, charm, does, fails, lab, printed};

/// A charm that collects from many units.
pub(crate) const COLLECTOR: &str = "
name: collector
requires:
  log: {interface: sql, batch: true}
config:
  options:
    colour: {type: string, default: red}
";

/// Returns a model with a held `a/0` of the collector, related to `b` with many started units on an agent
/// of their own.
fn related(units: u32) -> (Lab, periapt_host_api::RelationId) {
    let mut lab = lab();
    lab.add_agent("far").unwrap();
    lab.deploy_to("a", &charm(COLLECTOR), 1, "host").unwrap();
    lab.deploy_to("b", &charm(REMOTE), units, "far").unwrap();
    lab.run_until_idle().unwrap();
    let relation = lab.integrate("a:log", "b:db").unwrap();
    (lab, relation)
}

fn batches(lab: &Lab) -> Vec<String> {
    let hooks = lab.hooks_of("a/0");
    hooks.into_iter().filter(|hook| hook.starts_with("log-relation-batch")).collect()
}

fn check_invariants(lab: &Lab) {
    assert_eq!(invariants::order_violations(lab.trace()), []);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn two_hundred_units_join_an_aggregator_in_a_handful_of_hooks() {
    let (mut lab, relation) = related(200);
    lab.run_until_idle().unwrap();
    let joined: usize =
        lab.trace().iter().filter_map(|traced| traced.event.batch()).map(|batch| batch.joined.len()).sum();
    assert_eq!(joined, 200, "each is told of once");
    let hooks = batches(&lab).len();
    assert!((1..=5).contains(&hooks), "{hooks}");
    check_invariants(&lab);
    lab.remove_relation(relation).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0").last().unwrap(), "log-relation-broken");
    assert!(batches(&lab).len() <= hooks + 1, "they depart at once");
    check_invariants(&lab);
}

#[test]
fn without_the_key_in_the_metadata_each_member_has_hooks_of_its_own() {
    let mut lab = lab();
    lab.deploy("a", &charm(&COLLECTOR.replace(", batch: true", "")), 1).unwrap();
    lab.deploy("b", &charm(REMOTE), 20).unwrap();
    lab.integrate("a:log", "b:db").unwrap();
    lab.run_until_idle().unwrap();
    let of_members = lab.hooks_of("a/0").into_iter().filter(|hook| hook.contains("b/")).count();
    assert_eq!(of_members, 40);
}

#[test]
fn r42_who_joins_in_a_batch_is_listed_and_who_departs_is_not() {
    let (mut lab, _) = related(3);
    let tools = ["relation-list", "relation-batch --format json"].map(Action::tool).to_vec();
    lab.script("a/0", "log-relation-batch", tools).unwrap();
    lab.hold("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    printed(&lab, "relation-list", "b/0\nb/1\nb/2\n");
    let told = "{\"application-changed\":false,\"changed\":[],\"departed\":[],\
                \"joined\":[\"b/0\",\"b/1\",\"b/2\"]}\n";
    printed(&lab, "relation-batch --format json", told);
    lab.remove_unit("b/1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(batches(&lab).last().unwrap(), "log-relation-batch -b/1");
    printed(&lab, "relation-list", "b/0\nb/2\n");
}

#[test]
fn a_batch_is_not_told_where_another_hook_runs() {
    let mut lab = lab();
    lab.deploy("a", &charm(COLLECTOR), 1).unwrap();
    lab.script("a/0", "install", vec![Action::attempt("relation-batch")]).unwrap();
    lab.run_until_idle().unwrap();
    crate::bench::refused(&lab, "relation-batch", 1, "not running a batch hook");
}

#[test]
fn a_failed_batch_grows_until_it_succeeds() {
    let (mut lab, _) = related(1);
    lab.script("a/0", "log-relation-batch", fails()).unwrap();
    lab.run_until_idle().unwrap();
    lab.add_units("b", 2).unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(batches(&lab), ["log-relation-batch +b/0 +b/1 +b/2"]);
    check_invariants(&lab);
}

#[test]
fn a_unit_that_came_and_went_while_a_batch_had_failed_is_named_with_the_next() {
    let (mut lab, _) = related(2);
    lab.hold("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.script("a/0", "log-relation-batch", fails()).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.remove_unit("b/1").unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::Retry).unwrap();
    lab.run_until_idle().unwrap();
    let last = lab.trace().iter().rfind(|traced| traced.event.batch().is_some()).unwrap();
    assert_eq!(last.to_string(), "log-relation-batch +b/0");
    assert_eq!(last.coalesced, ["1 unit joined: b/0", "1 unit came and went: b/1"]);
    let journals = lab.records_of("a/0").filter_map(|body| match body {
        RecordBody::Journal(journal) => Some(journal),
        _ => None,
    });
    let newest = journals.last().unwrap();
    assert_eq!(newest.coalesced, last.coalesced, "and it stands in the journal");
    check_invariants(&lab);
}

#[test]
fn a_batch_that_is_passed_over_was_told() {
    let (mut lab, _) = related(2);
    lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    lab.hold("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.script("a/0", "log-relation-batch", fails()).unwrap();
    lab.release("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.unscript_all();
    lab.resolve("a/0", ResolveMode::NoRetry).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(batches(&lab), ["log-relation-batch +b/0 +b/1"]);
    let passed = lab.trace().iter().rfind(|traced| traced.event.batch().is_some()).unwrap();
    assert_eq!(passed.state, HookRunState::PassedOver);
    lab.remove_unit("b/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(batches(&lab).last().unwrap(), "log-relation-batch -b/0");
    check_invariants(&lab);
}

#[test]
fn a_charm_may_come_to_ask_for_batches_and_leave_it_again() {
    let single = charm(&COLLECTOR.replace(", batch: true", ""));
    let (mut lab, _) = related(2);
    lab.run_until_idle().unwrap();
    lab.refresh("a", &single).unwrap();
    lab.add_units("b", 1).unwrap();
    lab.run_until_idle().unwrap();
    let hooks = lab.hooks_of("a/0");
    assert_eq!(hooks[hooks.len() - 2..], ["log-relation-joined b/2", "log-relation-changed b/2"]);
    lab.upload(&charm(COLLECTOR)).unwrap();
    lab.refresh("a", &charm(COLLECTOR)).unwrap();
    lab.add_units("b", 1).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0").last().unwrap(), "log-relation-batch +b/3");
    check_invariants(&lab);
}

#[test]
fn a_runner_that_dies_under_a_batch_tells_it_again() {
    let (mut lab, _) = related(3);
    lab.hold("a/0").unwrap();
    lab.run_until_idle().unwrap();
    lab.release("a/0").unwrap();
    while !lab.trace().iter().any(|traced| traced.event.batch().is_some()) {
        assert!(lab.micro_step("a/0").unwrap());
    }
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    let states: Vec<HookRunState> = lab
        .trace()
        .iter()
        .filter(|traced| traced.event.batch().is_some())
        .map(|traced| traced.state)
        .collect();
    assert_eq!(states, [HookRunState::Lost, HookRunState::Committed]);
    check_invariants(&lab);
}

#[test]
fn r32_in_a_batch_a_unit_learns_that_it_is_the_one_who_leaves() {
    let (mut lab, _) = related(2);
    lab.script("a/0", "log-relation-batch", does("relation-list")).unwrap();
    lab.run_until_idle().unwrap();
    lab.command(&Command::RemoveUnit {
        unit: "a/0".parse().unwrap(),
        force: None,
        storage: Default::default(),
    })
    .unwrap();
    lab.run_until_idle().unwrap();
    let last = lab.trace().iter().rfind(|traced| traced.event.batch().is_some()).unwrap();
    let Event::RelationBatch { batch, .. } = &last.event else { panic!() };
    assert_eq!(batch.departed.len(), 2);
    assert_eq!(batch.departing_unit.as_ref().unwrap().to_string(), "a/0");
}
