//! Deliberate defects of executors are found: by the laboratory while it runs, or by the laws of a model at rest.

use std::time::Duration;

use periapt_lab::{Defect, LabError, laws};

use crate::bench::{PEERED, charm, lab};

/// Runs the start-up of a unit with a defect, and returns the findings.
fn life(defect: Option<Defect>) -> Result<Vec<laws::Breach>, LabError> {
    let mut lab = lab();
    lab.doubt_frames();
    if let Some(defect) = defect {
        lab.plant(defect);
    }
    lab.deploy("a", &charm(PEERED), 2)?;
    lab.run_until_idle()?;
    lab.advance(Duration::from_secs(600))?;
    let mut breaches = laws::order_broken(lab.trace());
    breaches.extend(laws::unrest(lab.state()?));
    Ok(breaches)
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
    let breaches = life(Some(Defect::LosesACommit)).unwrap();
    assert!(breaches.iter().any(|breach| breach.rule == "1.8"), "{breaches:?}");
}
