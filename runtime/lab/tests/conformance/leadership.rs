//! K: leadership, and how long a unit may rely on it (`docs/hook-model.md` 7.4).

use std::time::Duration;

use periapt_lab::{Action, Lab};

use crate::bench::{LOCAL, PEERED, charm, does, lab, runs, started};

/// Returns a model with two units of `a`, each on an agent of its own.
fn apart() -> Lab {
    let mut lab = lab();
    lab.add_agent("other").unwrap();
    lab.deploy_to("a", &charm(LOCAL), 1, "host").unwrap();
    lab.add_unit_to("a", "other").unwrap();
    lab.run_until_idle().unwrap();
    lab
}

/// Returns the leader of `a`, its agent, and the other unit.
fn roles(lab: &Lab) -> (String, String, String) {
    let application = lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().clone();
    let leader = application.leader.as_ref().unwrap().unit.to_string();
    let other = if leader == "a/0" { "a/1" } else { "a/0" };
    let agent = lab.state().unwrap().agent_of(lab.unit(&leader).unwrap()).unwrap().to_string();
    (leader, agent, other.to_owned())
}

/// Returns a unit's answer to `is-leader`.
fn is_leader(lab: &mut Lab, unit: &str) -> bool {
    lab.script(unit, "config-changed", does("is-leader")).unwrap();
    let colour = format!("colour-{}", lab.trace().len());
    lab.configure("a", &[("colour", &colour)]).unwrap();
    while lab
        .trace()
        .last()
        .is_none_or(|traced| traced.unit.to_string() != unit || traced.output_of("is-leader").is_none())
    {
        assert!(lab.step(unit).unwrap(), "{unit} runs no config-changed");
    }
    let answer = lab.trace().last().unwrap().output_of("is-leader").unwrap().stdout.trim().to_owned();
    lab.unscript(unit, "config-changed").unwrap();
    answer == "True"
}

#[test]
fn k01_who_does_not_lead_writes_no_leader_settings() {
    let mut lab = apart();
    let (_, _, other) = roles(&lab);
    lab.script(&other, "config-changed", vec![Action::attempt("leader-set a=1")]).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    let traced = lab.trace().iter().rev().find(|traced| traced.output_of("leader-set").is_some()).unwrap();
    assert_eq!(traced.output_of("leader-set").unwrap().exit_code, 1);
    assert!(lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().leader_settings.is_empty());
}

#[test]
fn k03_while_a_unit_believes_that_it_leads_nobody_else_is_told_so() {
    // The bound holds for every time of the last renewal before the cut, and of the last call.
    for renewed_before in [0, 7, 14] {
        let mut lab = apart();
        let (leader, agent, other) = roles(&lab);
        lab.advance(Duration::from_secs(renewed_before)).unwrap();
        assert!(is_leader(&mut lab, &leader));
        lab.cut_off(&agent).unwrap();
        let cut_off_at = lab.now();
        let believed = lab.now();
        while !is_leader(&mut lab, &other) {
            lab.advance(Duration::from_secs(1)).unwrap();
            assert!(lab.now().duration_since(cut_off_at).as_secs() < 200, "nobody ever leads");
        }
        let free = lab.now().duration_since(believed).as_secs_f64();
        assert!((30.0..=65.0).contains(&free), "the other leads {free} s after the leader was told so");
    }
}

#[test]
fn k03_a_leader_that_is_cut_off_stops_believing_before_another_unit_leads() {
    let mut lab = apart();
    let (leader, agent, other) = roles(&lab);
    // One hook, which began before the cut and cannot end, calls again and again.
    let asks = (0..90).flat_map(|_| [Action::attempt("is-leader"), Action::Sleep(Duration::from_secs(1))]);
    lab.script(&leader, "config-changed", asks.collect()).unwrap();
    lab.hold(&other).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.micro_step(&leader).unwrap();
    lab.cut_off(&agent).unwrap();
    assert!(lab.start_hook(&leader).unwrap());
    let asked = &lab.trace().last().unwrap().tools;
    let believed = asked.iter().filter(|call| call.output.stdout.trim() == "True").count();
    // The lease has 60 s from its last renewal, of which the last 30 do not count.
    assert!((15..=31).contains(&believed), "{believed} s");
    assert!(
        asked[..believed].iter().all(|call| call.output.stdout.trim() == "True"),
        "no True after a False"
    );
}

#[test]
fn k04_a_unit_that_becomes_leader_runs_leader_elected_once() {
    let mut lab = apart();
    let (_, agent, other) = roles(&lab);
    let before = runs(&lab, &other).len();
    lab.kill_agent(&agent).unwrap();
    lab.advance(Duration::from_secs(200)).unwrap();
    assert_eq!(runs(&lab, &other)[before..], ["leader-elected"]);
    assert!(is_leader(&mut lab, &other));
}

#[test]
fn who_lost_leadership_hears_of_it_by_the_leader_settings() {
    // D-7
    let mut lab = apart();
    let (leader, agent, _) = roles(&lab);
    let before = runs(&lab, &leader).len();
    lab.kill_agent(&agent).unwrap();
    lab.advance(Duration::from_secs(200)).unwrap();
    lab.start_agent(&agent).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, &leader)[before..], ["leader-settings-changed"]);
}

#[test]
fn k05_leader_elected_does_not_run_for_who_lost_leadership_before_it() {
    let mut lab = apart();
    let (leader, agent, other) = roles(&lab);
    lab.kill_agent(&agent).unwrap();
    // The other unit wins the lease, and is cut off before its hook runs; the first one leads again
    // meanwhile.
    lab.hold(&other).unwrap();
    lab.advance(Duration::from_secs(100)).unwrap();
    while !lab.unit(&other).unwrap().record.leader {
        assert!(lab.step(&other).unwrap());
    }
    let others_agent = lab.state().unwrap().agent_of(lab.unit(&other).unwrap()).unwrap().to_string();
    lab.kill_agent(&others_agent).unwrap();
    lab.start_agent(&agent).unwrap();
    lab.advance(Duration::from_secs(200)).unwrap();
    assert_eq!(roles(&lab).0, leader);
    let before = runs(&lab, &other).len();
    lab.start_agent(&others_agent).unwrap();
    lab.release(&other).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, &other)[before..], ["leader-settings-changed"]);
}

#[test]
fn k07_a_dying_leader_gives_leadership_up_and_hears_nothing_of_it() {
    let mut lab = apart();
    let (leader, _, other) = roles(&lab);
    let before = runs(&lab, &leader).len();
    lab.remove_unit(&leader).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, &leader)[before..], ["stop", "remove"]);
    assert_eq!(roles(&lab).0, other, "at once (L-4)");
    assert!(is_leader(&mut lab, &other));
}

#[test]
fn r21_the_leader_hears_of_its_own_write_to_its_peers_bag() {
    let mut lab = started(PEERED, 2);
    let before: Vec<usize> = ["a/0", "a/1"].map(|unit| runs(&lab, unit).len()).to_vec();
    let (leader, _, _) = roles(&lab);
    lab.script(&leader, "update-status", does("relation-set -r 0 --app k=v")).unwrap();
    lab.hold(&roles(&lab).2).unwrap();
    lab.advance(Duration::from_secs(370)).unwrap();
    lab.unscript_all();
    lab.release(&roles(&lab).2).unwrap();
    lab.run_until_idle().unwrap();
    for (unit, before) in ["a/0", "a/1"].iter().zip(before) {
        assert!(runs(&lab, unit)[before..].contains(&"ring-relation-changed".to_owned()), "{unit}");
    }
}
