//! Properties of random runs: a charm finds its own writes, and a removed thing goes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use periapt_host_api::{
    ErrorCode, UnitName,
    command::{Command, Force, ResolveMode},
    record::{HookStep, Operation},
};
use periapt_lab::{FaultRates, HookRunState, Lab, LabError, Traced};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::properties::{APPLICATIONS, ROUGH, act, beginning, config, connect, fault_rates, live, perform};

fn fail(error: LabError) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

/// Returns the count that a hook found, and true if it wrote the next one.
fn counted(traced: &Traced) -> Option<(u64, bool)> {
    let is = |name: &str, word: &str| {
        traced.tools.iter().find(|call| {
            call.argv.first().is_some_and(|first| first == name)
                && call.argv.iter().any(|argument| argument.starts_with(word))
        })
    };
    let found = is("relation-get", "count")?.output.stdout.trim().parse().unwrap_or_default();
    Some((found, is("relation-set", "count=").is_some()))
}

/// Checks that each hook finds the count of the last committed one of its unit (`docs/design/commit.md`). Returns
/// the number of checked hooks.
///
/// Operations give the order. A run whose agent is cut off ends late in the trace: its unit may have gone on elsewhere,
/// and the run is refused then.
fn check_counts(trace: &[Traced]) -> Result<usize, TestCaseError> {
    let counted: Vec<_> =
        trace.iter().filter_map(|traced| counted(traced).map(|count| (traced, count))).collect();
    let mut committed: BTreeMap<&UnitName, BTreeSet<u64>> = BTreeMap::new();
    for (traced, (_, counts)) in &counted {
        if *counts && traced.state == HookRunState::Committed {
            committed.entry(&traced.unit).or_default().insert(traced.operation.0);
        }
    }
    for (traced, (found, _)) in &counted {
        let before =
            committed.get(&traced.unit).map(|operations| operations.range(..traced.operation.0).count());
        let left = u64::try_from(before.unwrap_or_default()).unwrap();
        prop_assert_eq!(*found, left, "{} {} at {}", &traced.unit, traced, traced.operation.0);
    }
    Ok(counted.len())
}

/// Returns the units whose hook or charm has failed.
pub(crate) fn failed(lab: &Lab) -> Result<Vec<String>, LabError> {
    let has_failed = |operation: &Operation| {
        matches!(
            operation,
            Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. }
        )
    };
    let failed = lab.state()?.units().filter(|unit| has_failed(&unit.record.operation));
    Ok(failed.map(|unit| unit.name.to_string()).collect())
}

/// Removes all present applications.
fn remove_all(lab: &mut Lab, force: Option<Force>) -> Result<(), LabError> {
    for name in APPLICATIONS {
        let application = name.parse()?;
        match lab.command(&Command::RemoveApplication { application, force, storage: Default::default() }) {
            Err(LabError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => {}
            done => drop(done?),
        }
    }
    Ok(())
}

fn check_empty(lab: &Lab) -> Result<(), TestCaseError> {
    let state = lab.state().map_err(fail)?;
    let units: Vec<_> = state.units().map(|unit| (&unit.name, unit.life, &unit.record.operation)).collect();
    prop_assert!(units.is_empty(), "{:?}", units);
    let applications: Vec<_> = state.applications().map(|application| &application.name).collect();
    prop_assert!(applications.is_empty(), "{:?}", applications);
    let (relations, machines) = (state.relations().count(), state.machines().count());
    prop_assert_eq!((relations, machines, state.relations_with_bags().count()), (0, 0, 0));
    Ok(())
}

/// Shows that the property below is not vacuous: random lives have hooks that count.
#[test]
fn wild_runs_have_hooks_that_count() {
    let mut runner = TestRunner::deterministic();
    let lives = prop::collection::vec(act(), 20..30);
    let looked_at = (0..8).map(|seed| {
        let acts = lives.new_tree(&mut runner).unwrap().current();
        check_counts(live(seed, ROUGH, &acts).unwrap().trace()).unwrap()
    });
    let looked_at: usize = looked_at.sum();
    assert!(looked_at > 80, "only {looked_at} hooks counted");
}

#[test]
fn a_hook_that_finds_an_older_count_is_noticed() {
    let mut lab = beginning(1).unwrap();
    lab.run_until_idle().unwrap();
    let trace = lab.trace().to_vec();
    assert!(check_counts(&trace).unwrap() > 4);
    for (place, _) in
        trace.iter().enumerate().filter(|(_, traced)| counted(traced).is_some_and(|(found, _)| found > 0))
    {
        let mut trace = trace.clone();
        let read = trace[place].tools.iter_mut().find(|call| call.argv[0] == "relation-get").unwrap();
        let older = read.output.stdout.trim().parse::<u64>().unwrap() - 1;
        read.output.stdout = format!("{older}\n");
        assert!(check_counts(&trace).is_err(), "{}", trace[place]);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_unit_always_finds_what_it_has_written_last(
        seed: u64,
        fault_rates in fault_rates(),
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let lab = live(seed, fault_rates, &acts)?;
        check_counts(lab.trace())?;
    }

    #[test]
    fn every_removal_ends_once_errors_are_resolved(
        seed: u64,
        acts in prop::collection::vec(act(), 1..40),
        retries in prop::collection::vec(any::<bool>(), 16),
    ) {
        let mut lab = beginning(seed).map_err(fail)?;
        // Without automatic retries the operator ends each error.
        lab.configure_model(&[("automatically-retry-hooks", "false")]).map_err(fail)?;
        for act in &acts {
            perform(&mut lab, act).map_err(fail)?;
        }
        connect(&mut lab).map_err(fail)?;
        remove_all(&mut lab, None).map_err(fail)?;
        lab.advance(Duration::from_secs(200)).map_err(fail)?;
        lab.unscript_all();
        let mut retries = retries.into_iter().cycle();
        for _ in 0..100 {
            let failed = failed(&lab).map_err(fail)?;
            if failed.is_empty() {
                break;
            }
            for unit in failed {
                let retry = retries.next().unwrap_or(true);
                let mode = if retry { ResolveMode::Retry } else { ResolveMode::NoRetry };
                // The unit may be gone, or was resolved before its agent was reached again.
                match lab.resolve(&unit, mode) {
                    Ok(()) | Err(LabError::Refused(_)) => {}
                    Err(other) => return Err(fail(other)),
                }
            }
            lab.advance(Duration::from_secs(20)).map_err(fail)?;
        }
        lab.advance(Duration::from_secs(200)).map_err(fail)?;
        check_empty(&lab)?;
    }

    /// Hooks go on failing, and agents stay dead or cut off: force waits for its time-out, and ends the removal.
    #[test]
    fn every_removal_ends_by_force_whatever_hangs(
        seed: u64,
        acts in prop::collection::vec(act(), 1..40),
        max_wait in 0..120_u32,
    ) {
        let mut lab = beginning(seed).map_err(fail)?;
        for act in &acts {
            perform(&mut lab, act).map_err(fail)?;
        }
        remove_all(&mut lab, Some(Force { max_wait })).map_err(fail)?;
        lab.advance(Duration::from_secs(u64::from(max_wait) + 1)).map_err(fail)?;
        lab.advance(Duration::from_secs(300)).map_err(fail)?;
        check_empty(&lab)?;
    }
}

/// The connection is cut while a hook's early items wait, so its commit waits for them. Then the agent dies.
#[test]
fn a_hook_whose_commit_waits_for_its_early_items_is_lost_with_its_runner() {
    use crate::properties::Act::*;
    let fault_rates = FaultRates { lost_answers: 0, late_claims: 0 };
    let acts = [
        Advance(30),
        Interleave(3),
        Configure(0, 0),
        RebootHost(1),
        Interleave(8),
        CutOff(0),
        Advance(30),
        KillAgent(0),
    ];
    let lab = live(3404232041051955774, fault_rates, &acts).unwrap();
    check_counts(lab.trace()).unwrap();
    let lost = lab.trace().iter().filter(|traced| traced.state == HookRunState::Lost).count();
    assert_eq!(lost, 1);
}

/// A runner dies, and a frame is applied before its successor has looked at its units, or while a commit of theirs has no
/// answer.
#[test]
fn a_frame_concerns_no_unit_that_will_look_at_the_newest_view() {
    use crate::properties::Act::*;
    let fault_rates = FaultRates { lost_answers: 0, late_claims: 700 };
    let acts = [
        Interleave(58),
        AddUnit(1),
        Fail(0, 4),
        AddUnit(1),
        Interleave(15),
        CutOff(0),
        Integrate(3),
        RemoveApplication(0),
        Refresh(0, 0, false),
        Interleave(90),
        CrashRunner(1),
        Interleave(1),
        RemoveRelation(1, None),
    ];
    let lab = live(438370929928677159, fault_rates, &acts).unwrap();
    check_counts(lab.trace()).unwrap();

    let fault_rates = FaultRates { lost_answers: 300, late_claims: 1_000 };
    let acts = [
        RebootHost(0),
        Interleave(59),
        Interleave(38),
        RemoveApplication(1),
        CrashRunner(1),
        AddUnit(0),
        Integrate(2),
        AddUnit(0),
        Interleave(14),
        RemoveUnit(15, None),
    ];
    let lab = live(13792016973553574542, fault_rates, &acts).unwrap();
    check_counts(lab.trace()).unwrap();
}
