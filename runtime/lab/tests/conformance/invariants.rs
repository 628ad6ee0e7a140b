//! Tests of the invariants: a trace that breaks an invariant is found, and no other.

use periapt_host_api::{UnitName, event::Event};
use periapt_lab::{HookRunState, Lab, Traced, invariants};

use crate::bench::{PEERED, REMOTE, Related, charm, lab};

/// Returns the trace of a whole life of `a/0`: installed, related, and removed.
fn life() -> Vec<Traced> {
    let mut bench = Related::joined(2);
    bench.lab.remove_relation(bench.relation).unwrap();
    bench.run();
    bench.lab.remove_unit("a/0").unwrap();
    bench.run();
    bench.lab.trace().to_vec()
}

/// Returns the position of a hook in a trace.
fn place(trace: &[Traced], hook: &str) -> usize {
    trace.iter().position(|traced| traced.to_string() == hook).unwrap()
}

fn check(rule: &str, change: impl FnOnce(&mut Vec<Traced>)) {
    let mut trace = life();
    assert_eq!(invariants::order_violations(&trace), []);
    change(&mut trace);
    let broken = invariants::order_violations(&trace);
    assert!(broken.iter().any(|violation| violation.rule.starts_with(rule)), "{rule}: {broken:?}");
}

fn swap(one: &'static str, other: &'static str) -> impl FnOnce(&mut Vec<Traced>) {
    move |trace| {
        let (one, other) = (place(trace, one), place(trace, other));
        trace.swap(one, other);
    }
}

fn lacks(hook: &'static str) -> impl FnOnce(&mut Vec<Traced>) {
    move |trace| {
        let place = place(trace, hook);
        trace.remove(place);
    }
}

fn twice(hook: &'static str) -> impl FnOnce(&mut Vec<Traced>) {
    move |trace| {
        let place = place(trace, hook);
        let again = trace[place].clone();
        trace.insert(place + 1, again);
    }
}

#[test]
fn the_order_of_a_life_is_an_invariant() {
    check("1.8 install comes first", swap("install", "leader-elected"));
    check("1.8 install is committed once", twice("install"));
    check("1.8 nothing follows remove", swap("stop", "remove"));
    check("U-24", swap("leader-elected", "config-changed"));
    check("U-4", swap("leader-elected", "config-changed"));
    check("U-4", lacks("leader-elected"));
    check("U-23", swap("stop", "db-relation-broken"));
}

#[test]
fn the_order_of_a_relation_is_a_law() {
    check("R-28", lacks("db-relation-created"));
    check("R-28", twice("db-relation-created"));
    check("R-23", lacks("db-relation-changed b/0"));
    check("R-23", swap("db-relation-changed b/0", "db-relation-joined b/1"));
    check("R-25 broken is last", twice("db-relation-broken"));
    check("R-25 all departs precede broken", lacks("db-relation-departed b/1"));
    check("2.5 departed of a stranger", twice("db-relation-departed b/0"));
    check("2.5 changed of a stranger", |trace| {
        let at = place(trace, "db-relation-joined b/0");
        trace.remove(at);
    });
}

#[test]
fn a_failed_hook_that_another_passes_is_a_breach() {
    check("U-29", |trace| {
        let at = place(trace, "config-changed");
        trace[at].state = HookRunState::Failed;
    });
}

#[test]
fn a_hook_that_was_lost_counts_for_nothing() {
    let mut trace = life();
    let at = place(&trace, "db-relation-joined b/0");
    let lost = Traced { state: HookRunState::Lost, ..trace[at].clone() };
    trace.insert(at, lost);
    assert_eq!(invariants::order_violations(&trace), []);
}

/// Returns the trace of two units that call `is-leader`, one after the other.
fn two_ask(lab: &mut Lab) -> Vec<Traced> {
    lab.deploy("a", &charm(PEERED).with_handler(|hook| hook.tool("is-leader").map(|_| ())), 2).unwrap();
    lab.run_until_idle().unwrap();
    lab.trace().to_vec()
}

#[test]
fn two_leaders_at_a_time_are_a_breach() {
    let mut trace = two_ask(&mut lab());
    assert_eq!(invariants::order_violations(&trace), []);
    let two = "a/1".parse::<UnitName>().unwrap();
    let first = trace.iter_mut().find(|traced| traced.unit == two && traced.event == Event::Install).unwrap();
    first.tools[0].output.stdout = "True\n".to_owned();
    assert!(invariants::order_violations(&trace).iter().any(|violation| violation.rule == "D-3"));
}

#[test]
fn a_model_with_something_left_to_do_is_not_at_rest() {
    let mut lab = lab();
    lab.deploy("a", &charm(PEERED), 2).unwrap();
    lab.deploy("b", &charm(REMOTE), 1).unwrap();
    let relation = lab.integrate("a", "b").unwrap();
    lab.run_until_idle().unwrap();
    let rules = |lab: &Lab| -> Vec<&str> {
        invariants::rest_violations(lab.state().unwrap())
            .into_iter()
            .map(|violation| violation.rule)
            .collect()
    };
    assert_eq!(rules(&lab), Vec::<&str>::new());
    let altered = |change: &dyn Fn(&mut Lab)| {
        let mut lab = crate::bench::lab();
        lab.deploy("a", &charm(PEERED), 2).unwrap();
        lab.deploy("b", &charm(REMOTE), 1).unwrap();
        lab.integrate("a", "b").unwrap();
        lab.run_until_idle().unwrap();
        change(&mut lab);
        rules(&lab)
    };
    let record = |change: fn(&mut periapt_host_api::record::UnitRecord)| {
        altered(&move |lab: &mut Lab| lab.alter_unit("a/0", |unit| change(&mut unit.record)).unwrap())
    };
    assert_eq!(record(|record| record.started = false), ["1.8"]);
    assert_eq!(record(|record| record.seen.config.clear()), ["U-3"]);
    assert_eq!(record(|record| record.charm = None), ["U-36"]);
    assert_eq!(record(|record| record.leader = false), ["1.7 rule 8"]);
    assert_eq!(record(|record| record.relations.clear()), ["R-28", "R-28"]);
    assert_eq!(altered(&|lab| lab.hold("b/0").unwrap()), Vec::<&str>::new());
    let unread = altered(&move |lab| {
        lab.hold("a/0").unwrap();
        lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    });
    assert_eq!(unread, ["2.5", "2.5"], "neither unit of a has seen the write");
    let dying = altered(&|lab| {
        lab.hold("a/1").unwrap();
        lab.remove_unit("a/1").unwrap();
    });
    assert!(dying.contains(&"U-39"), "{dying:?}");
}
