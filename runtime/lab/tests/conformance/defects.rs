//! Deliberate defects of executors are found: by the laboratory while it runs, or by the invariants of a model at rest.

use std::time::Duration;

use periapt_lab::{Defect, LabError, invariants};

use crate::bench::{PEERED, charm, lab};

/// Runs the start-up of a unit with a defect, and returns the findings.
fn life(defect: Option<Defect>) -> Result<Vec<invariants::Violation>, LabError> {
    let mut lab = lab();
    lab.check_unconcerned_units();
    if let Some(defect) = defect {
        lab.plant(defect);
    }
    lab.deploy("a", &charm(PEERED), 2)?;
    lab.run_until_idle()?;
    lab.advance(Duration::from_secs(600))?;
    let mut violations = invariants::order_violations(lab.trace());
    violations.extend(invariants::rest_violations(lab.state()?));
    Ok(violations)
}

#[test]
fn without_a_defect_nothing_comes_to_light() {
    assert_eq!(life(None).unwrap(), []);
}

#[test]
fn an_executor_that_runs_the_next_hook_before_the_commit_is_answered_is_found() {
    let told = life(Some(Defect::NextBeforeAnswer)).unwrap_err();
    assert!(matches!(told, LabError::NotSerial { .. }), "{told}");
}

#[test]
fn an_executor_that_acts_on_a_view_without_its_last_commit_is_found() {
    let told = life(Some(Defect::ActsOnAnOldView)).unwrap_err();
    assert!(matches!(told, LabError::OldView { .. }), "{told}");
}

#[test]
fn an_executor_that_loses_a_commit_is_found() {
    let violations = life(Some(Defect::LosesACommit)).unwrap();
    assert!(violations.iter().any(|violation| violation.rule == "1.8"), "{violations:?}");
}
