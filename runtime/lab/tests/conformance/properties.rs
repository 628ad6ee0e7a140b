//! Properties of random runs: operators with arbitrary commands, failing hooks, processes that die between any two
//! steps, answers and frames that are late or lost. The order of hooks keeps its invariants (R-23, R-25, R-28, U-24,
//! ...), mirrors equal their views, and once all faults end and every cause is fixed, every unit settles.

use std::{collections::BTreeSet, time::Duration};

use periapt_host_api::{
    UnitName,
    command::{Command, Force, RelationSelector, ResolveMode},
    event::Event,
};
use periapt_lab::{
    Action, Claims, Ending, FaultRates, Hook, HookRunState, Lab, LabCharm, LabError, invariants,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{bench::charm, promises::failed};

const WEB: &str = "
name: web
requires:
  db: {interface: sql}
  cache: {interface: cache, limit: 1}
peers:
  ring: {interface: ring}
config:
  options:
    colour: {type: string, default: red}
";

const BASE: &str = "
name: base
provides:
  db: {interface: sql}
  cache: {interface: cache}
config:
  options:
    colour: {type: string, default: red}
";

const HELPER: &str = "
name: helper
subordinate: true
requires:
  host: {interface: juju-info, scope: container}
config:
  options:
    colour: {type: string, default: red}
";

/// The hooks that may be made to fail.
const HOOKS: &[&str] = &[
    "install",
    "leader-elected",
    "config-changed",
    "start",
    "stop",
    "upgrade-charm",
    "db-relation-created",
    "db-relation-joined",
    "db-relation-changed",
    "db-relation-departed",
    "db-relation-broken",
    "db-relation-batch",
    "ring-relation-changed",
];

pub(crate) const APPLICATIONS: [&str; 3] = ["a", "b", "s"];
pub(crate) const AGENTS: [&str; 2] = ["host", "far"];
const ENDS: [(&str, &str); 4] = [("a:db", "b:db"), ("a:cache", "b:cache"), ("s", "a"), ("s", "b")];

/// One action of an operator, or one fault. Numbers name things by their position among the present ones.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    AddUnit(usize),
    RemoveUnit(usize, Option<u32>),
    /// Removes a member of which some unit has run joined, and not yet changed: the rare case of R-24.
    RemoveJoining(usize),
    Integrate(usize),
    RemoveRelation(usize, Option<u32>),
    RemoveApplication(usize),
    Configure(usize, u8),
    /// Configures principals and their subordinates alike, on one machine each, so that their hooks run at one time.
    Clash(u8),
    Refresh(usize, u8, bool),
    Fail(usize, usize),
    Fix(usize),
    Resolve(usize, bool),
    Interleave(usize),
    Advance(u16),
    CrashRunner(usize),
    KillAgent(usize),
    StartAgent(usize),
    RebootHost(usize),
    CutOff(usize),
    HoldFrames(usize),
    /// Makes a keeper claim nothing, or lose the answers.
    SlowKeeper(usize, bool),
    Reconnect(usize),
    RestartController,
}

pub(crate) fn act() -> impl Strategy<Value = Act> {
    let force = || prop_oneof![3 => Just(None), 1 => (0..100_u32).prop_map(Some)];
    let nth = || 0..16_usize;
    prop_oneof![
        2 => (0..2_usize).prop_map(Act::AddUnit),
        2 => (nth(), force()).prop_map(|(unit, force)| Act::RemoveUnit(unit, force)),
        3 => nth().prop_map(Act::RemoveJoining),
        3 => (0..ENDS.len()).prop_map(Act::Integrate),
        2 => (nth(), force()).prop_map(|(relation, force)| Act::RemoveRelation(relation, force)),
        1 => (0..3_usize).prop_map(Act::RemoveApplication),
        2 => (0..3_usize, any::<u8>()).prop_map(|(application, value)| Act::Configure(application, value)),
        1 => any::<u8>().prop_map(Act::Clash),
        1 => (0..3_usize, 0..3_u8, any::<bool>()).prop_map(|(application, note, force)| Act::Refresh(application, note, force)),
        4 => (nth(), 0..HOOKS.len()).prop_map(|(unit, hook)| Act::Fail(unit, hook)),
        2 => nth().prop_map(Act::Fix),
        2 => (nth(), any::<bool>()).prop_map(|(unit, retry)| Act::Resolve(unit, retry)),
        16 => (1..60_usize).prop_map(Act::Interleave),
        3 => (0..400_u16).prop_map(Act::Advance),
        3 => (0..2_usize).prop_map(Act::CrashRunner),
        1 => (0..2_usize).prop_map(Act::KillAgent),
        1 => (0..2_usize).prop_map(Act::StartAgent),
        1 => (0..2_usize).prop_map(Act::RebootHost),
        1 => (0..2_usize).prop_map(Act::CutOff),
        1 => (0..2_usize).prop_map(Act::HoldFrames),
        1 => (0..2_usize, any::<bool>()).prop_map(|(agent, sends)| Act::SlowKeeper(agent, sends)),
        1 => (0..2_usize).prop_map(Act::Reconnect),
        1 => Just(Act::RestartController),
    ]
}

/// Handles events of these charms: it writes to its bags on joined and config-changed, and a leader to the
/// application's, too. The writes do not depend on reads, so they come to an end.
fn handler(hook: &mut Hook<'_>) -> Result<(), String> {
    count(hook)?;
    let colour = hook.tool("config-get colour")?.trim().to_owned();
    let endpoints = ["db", "cache", "ring", "host"];
    let writes = match hook.event() {
        Event::ConfigChanged | Event::LeaderElected => true,
        Event::RelationJoined { .. } | Event::RelationCreated(_) | Event::RelationBatch { .. } => {
            hook.unit().number().is_multiple_of(2)
        }
        _ => false,
    };
    if !writes {
        return Ok(());
    }
    if *hook.event() == Event::ConfigChanged {
        // A principal and its subordinate live on one machine, and one of them gets the port. The other one's tool
        // fails, or its commit if both request it at the same time.
        let number = colour.trim_start_matches('c').parse::<u8>().unwrap_or_default();
        let _ = hook.tool(&format!("open-port {}/tcp", 8_000 + u32::from(number)));
    }
    // The events fill up to their bound.
    let _ = hook.tool("emit-later look --after 30s --when-config colour");
    let leads = hook.tool("is-leader")?.trim() == "True";
    for endpoint in endpoints {
        let relations = hook.tool(&format!("relation-ids {endpoint}"))?;
        for relation in relations.split_whitespace() {
            hook.tool(&format!("relation-set -r {relation} colour={colour}"))?;
            if leads {
                hook.tool(&format!("relation-set -r {relation} --app colour={colour}"))?;
            }
        }
    }
    Ok(())
}

/// Adds one to a number in the unit's own bag among its peers, whose hooks do not do the same in turn.
fn count(hook: &mut Hook<'_>) -> Result<(), String> {
    let peers = hook.tool("relation-ids ring")?.trim().to_owned();
    if peers.is_empty() {
        return Ok(());
    }
    let seen = hook.tool(&format!("relation-get -r {peers} count {}", hook.unit()))?;
    match hook.event() {
        Event::RelationChanged { relation, .. } | Event::RelationBatch { relation, .. }
            if relation.endpoint.as_str() == "ring" => {}
        _ => {
            let next = seen.trim().parse::<u64>().unwrap_or_default() + 1;
            hook.tool(&format!("relation-set -r {peers} count={next}"))?;
        }
    }
    Ok(())
}

fn of(application: usize) -> LabCharm {
    charm([WEB, BASE, HELPER][application]).with_handler(handler)
}

/// Returns another revision of a charm, every other of which asks for batches in all its relations.
fn revision_of(application: usize, note: u8) -> LabCharm {
    let text = [WEB, BASE, HELPER][application];
    let charm = match note.is_multiple_of(2) {
        true => charm(text),
        false => charm(&text.replace("{interface", "{batch: true, interface")),
    };
    charm.with_handler(handler).revised(&note.to_string())
}

pub(crate) fn beginning(seed: u64) -> Result<Lab, LabError> {
    let mut lab = Lab::new(seed)?;
    lab.add_agent("far")?;
    lab.deploy("a", &of(0), 2)?;
    lab.deploy("b", &of(1), 1)?;
    lab.deploy("s", &of(2), 0)?;
    Ok(lab)
}

/// Performs one action. A refused one changes nothing.
pub(crate) fn perform(lab: &mut Lab, act: &Act) -> Result<(), LabError> {
    let done = try_to(lab, act);
    match done {
        Err(LabError::Refused(_) | LabError::Unknown { .. }) => Ok(()),
        other => other,
    }
}

fn nth<T>(mut things: Vec<T>, place: usize) -> Option<T> {
    (!things.is_empty()).then(|| things.swap_remove(place % things.len()))
}

fn units(lab: &Lab) -> Result<Vec<UnitName>, LabError> {
    Ok(lab.state()?.units().map(|unit| unit.name.clone()).collect())
}

/// Returns the members of which some unit has yet to run the first changed hook.
fn joining(lab: &Lab) -> Result<Vec<UnitName>, LabError> {
    let told = lab.state()?.units().flat_map(|unit| unit.record.relations.values());
    Ok(told.filter_map(|told| told.changed_pending.clone()).collect())
}

fn try_to(lab: &mut Lab, act: &Act) -> Result<(), LabError> {
    let forced = |force: &Option<u32>| force.map(|max_wait| Force { max_wait });
    match act {
        Act::AddUnit(application) => lab.add_units(APPLICATIONS[*application], 1).map(|_| ()),
        Act::RemoveUnit(place, force) => match nth(units(lab)?, *place) {
            Some(unit) => lab
                .command(&Command::RemoveUnit { unit, force: forced(force), storage: Default::default() })
                .map(|_| ()),
            None => Ok(()),
        },
        Act::RemoveJoining(place) => match nth(joining(lab)?, *place) {
            Some(unit) => lab
                .command(&Command::RemoveUnit { unit, force: None, storage: Default::default() })
                .map(|_| ()),
            None => Ok(()),
        },
        Act::Integrate(place) => lab.integrate(ENDS[*place].0, ENDS[*place].1).map(|_| ()),
        Act::RemoveRelation(place, force) => {
            let relations = lab.state()?.relations().map(|relation| relation.id).collect();
            let Some(id) = nth(relations, *place) else { return Ok(()) };
            let relation = RelationSelector::Id(id);
            lab.command(&Command::RemoveRelation { relation, force: forced(force) }).map(|_| ())
        }
        Act::RemoveApplication(application) => lab.remove_application(APPLICATIONS[*application]),
        Act::Configure(application, value) => {
            lab.configure(APPLICATIONS[*application], &[("colour", &format!("c{value}"))])
        }
        Act::Clash(value) => {
            let colour = format!("c{value}");
            for application in APPLICATIONS {
                // One of the applications may be gone.
                let _ = lab.configure(application, &[("colour", &colour)]);
            }
            let pairs = lab.state()?.units().filter_map(|unit| Some((unit.principal.clone()?, &unit.name)));
            let pairs: Vec<_> = pairs.map(|(principal, unit)| (principal, unit.clone())).collect();
            for (principal, unit) in pairs {
                lab.start_hook(&principal.to_string())?;
                lab.start_hook(&unit.to_string())?;
            }
            Ok(())
        }
        Act::Refresh(application, note, force) => {
            let charm = revision_of(*application, *note);
            match force {
                true => lab.force_refresh(APPLICATIONS[*application], &charm),
                false => lab.refresh(APPLICATIONS[*application], &charm),
            }
        }
        Act::Fail(place, hook) => match nth(units(lab)?, *place) {
            Some(unit) => lab.script(&unit.to_string(), HOOKS[*hook], vec![Action::fail("out of luck")]),
            None => Ok(()),
        },
        Act::Fix(place) => match nth(units(lab)?, *place) {
            Some(unit) => HOOKS.iter().try_for_each(|hook| lab.unscript(&unit.to_string(), hook)),
            None => Ok(()),
        },
        Act::Resolve(place, retry) => {
            let mode = if *retry { ResolveMode::Retry } else { ResolveMode::NoRetry };
            match nth(failed(lab)?, *place) {
                Some(unit) => lab.resolve(&unit, mode),
                None => Ok(()),
            }
        }
        Act::Interleave(steps) => lab.run_interleaved(*steps),
        Act::Advance(seconds) => lab.advance(Duration::from_secs(u64::from(*seconds))),
        Act::CrashRunner(agent) => lab.crash_runner(AGENTS[*agent]),
        Act::KillAgent(agent) => lab.kill_agent(AGENTS[*agent]),
        Act::StartAgent(agent) => lab.start_agent(AGENTS[*agent]),
        Act::RebootHost(agent) => lab.reboot_host(AGENTS[*agent]),
        Act::CutOff(agent) => lab.cut_off(AGENTS[*agent]),
        Act::HoldFrames(agent) => lab.hold_frames(AGENTS[*agent]),
        Act::SlowKeeper(agent, sends) => {
            lab.set_claims(AGENTS[*agent], if *sends { Claims::Unanswered } else { Claims::Unsent })
        }
        Act::Reconnect(agent) => reconnect(lab, AGENTS[*agent]),
        Act::RestartController => lab.restart_controller(),
    }
}

/// Ends all faults, fixes every cause, and lets enough time pass: the longest back-off and the longest forced wait are
/// under six minutes.
fn calm(lab: &mut Lab) -> Result<(), LabError> {
    lab.unscript_all();
    connect(lab)?;
    lab.advance(Duration::from_secs(400))?;
    lab.advance(Duration::from_secs(400))
}

/// Starts and connects every agent, and lets no answer be lost.
pub(crate) fn connect(lab: &mut Lab) -> Result<(), LabError> {
    lab.set_fault_rates(FaultRates::default());
    for agent in AGENTS {
        lab.start_agent(agent)?;
        reconnect(lab, agent)?;
    }
    Ok(())
}

fn reconnect(lab: &mut Lab, agent: &str) -> Result<(), LabError> {
    lab.release_frames(agent)?;
    lab.set_claims(agent, Claims::Answered)?;
    lab.reconnect(agent)
}

fn check_laws(lab: &Lab) -> Result<(), TestCaseError> {
    let violations = invariants::order_violations(lab.trace());
    prop_assert!(
        violations.is_empty(),
        "{}",
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    );
    Ok(())
}

/// Generates the rates of simulated faults.
pub(crate) fn fault_rates() -> impl Strategy<Value = FaultRates> {
    let lost_answers = prop_oneof![Just(0_u16), Just(300)];
    let late_claims = prop_oneof![Just(0_u16), Just(700), Just(1000)];
    (lost_answers, late_claims)
        .prop_map(|(lost_answers, late_claims)| FaultRates { lost_answers, late_claims })
}

/// Rates at which some answers are lost, and most claims are late.
pub(crate) const ROUGH: FaultRates = FaultRates { lost_answers: 100, late_claims: 700 };

pub(crate) fn live(seed: u64, fault_rates: FaultRates, acts: &[Act]) -> Result<Lab, TestCaseError> {
    let fail = |error: LabError| TestCaseError::fail(error.to_string());
    let mut lab = beginning(seed).map_err(fail)?;
    lab.check_unconcerned_units();
    lab.set_fault_rates(fault_rates);
    for act in acts {
        perform(&mut lab, act).map_err(fail)?;
    }
    check_laws(&lab)?;
    calm(&mut lab).map_err(fail)?;
    Ok(lab)
}

/// Shows that the random runs below are not vacuous: some dozens of them have every kind of hook, and hooks of every
/// state.
#[test]
fn wild_runs_meet_every_fate_and_every_kind_of_hook() {
    let mut runner = TestRunner::deterministic();
    let lives = prop::collection::vec(act(), 30..40);
    let mut states = BTreeSet::new();
    let mut kinds = BTreeSet::new();
    for seed in 0..40 {
        let acts = lives.new_tree(&mut runner).unwrap().current();
        let lab = live(seed, ROUGH, &acts).unwrap();
        for traced in lab.trace() {
            let refused = traced.state == HookRunState::Failed && traced.ending == Some(Ending::Handled);
            states.insert(if refused { "Refused".to_owned() } else { format!("{:?}", traced.state) });
            kinds.insert(traced.event.kind());
        }
    }
    let wanted = ["Committed", "Failed", "Lost", "Moot", "PassedOver", "Refused"].map(str::to_owned);
    assert!(wanted.iter().all(|state| states.contains(state)), "{states:?}");
    assert_eq!(kinds.len(), 16, "{kinds:?}");
}

/// Sets the number of cases. A random run takes a second or two, so there are fewer of them than of other properties,
/// unless `PROPTEST_CASES` is set. A failure is told after a minute of shrinking, before the test runner kills the test.
pub(crate) fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(32),
        max_shrink_iters: 2_000,
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_hooks_keep_their_order_and_every_unit_settles(
        seed: u64,
        fault_rates in fault_rates(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let lab = live(seed, fault_rates, &acts)?;
        check_laws(&lab)?;
        let rest_violations = invariants::rest_violations(lab.state().map_err(|error| TestCaseError::fail(error.to_string()))?);
        prop_assert!(rest_violations.is_empty(), "{}", rest_violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn the_same_seed_gives_the_same_run(seed: u64, acts in prop::collection::vec(act(), 1..15)) {
        let (one, other) = (live(seed, ROUGH, &acts)?, live(seed, ROUGH, &acts)?);
        prop_assert_eq!(one.trace(), other.trace());
        prop_assert_eq!(one.root().revision(), other.root().revision());
    }
}
