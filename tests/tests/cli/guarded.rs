//! The end of an installation whose starter was killed.

use periapt_tests::{Installation, InstallationGuard, parts};

#[test]
fn what_a_killed_benchmark_started_ends_with_it() {
    let periapt = Installation::bootstrapped().unwrap();
    let guard = InstallationGuard::of(&periapt).unwrap();
    assert!(!parts(&periapt).unwrap().is_empty());
    guard.abandon().unwrap();
    assert_eq!(parts(&periapt).unwrap(), []);
}

#[test]
fn a_guard_that_is_dropped_kills_nothing() {
    let periapt = Installation::bootstrapped().unwrap();
    let before = parts(&periapt).unwrap();
    drop(InstallationGuard::of(&periapt).unwrap());
    assert_eq!(parts(&periapt).unwrap(), before);
}
