//! The same inputs give the same run.

use periapt_host_api::event::Event;
use periapt_sandbox::{Outcome, Seed};

use crate::world::{Hook, Ran, prepared};

async fn mysql(seed: u8) -> Ran {
    // It makes a password, so it draws from the random source.
    let mut hook = Hook::new(Event::Install);
    hook.seed = Seed([seed; 32]);
    hook.run(&prepared("probe", "probe"), "probe").await
}

#[tokio::test]
async fn a_hook_costs_the_same_and_says_the_same_each_time() {
    let one = mysql(1).await;
    let other = mysql(1).await;
    assert_eq!(one.report.outcome, Outcome::Handled);
    assert_eq!(one.report.costs.fuel, other.report.costs.fuel);
    assert_eq!(one.report.costs.host_calls, other.report.costs.host_calls);
    assert_eq!(one.report.gathered, other.report.gathered);
    assert_eq!(one.log(), other.log());
}
