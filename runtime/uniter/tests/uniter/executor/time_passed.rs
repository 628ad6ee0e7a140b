//! A time came.

use periapt_host_api::ErrorCode;
use periapt_uniter::executor::{ExecutorCommand, Returned};

use super::bench::{Bench, is_quiet};

#[test]
fn a_runner_whose_commits_stay_stale_is_not_the_units_any_more() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.refuse(ErrorCode::Stale);
    assert!(is_quiet(&bench.pass(14_999)));
    assert!(bench.pass(1).iter().any(|command| matches!(command, ExecutorCommand::Revoked)));
}
