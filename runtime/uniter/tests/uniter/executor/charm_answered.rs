//! The driver answered a request for a charm.

use periapt_host_api::status::AgentStatus;
use periapt_uniter::executor::{CharmAnswer, ExecutorInput};

use super::bench::{Bench, agent_says, fetches};

#[test]
fn a_charm_that_stays_away_is_told_of_after_three_seconds_once_and_taken_back() {
    let mut bench = Bench::configured();
    bench.feed(ExecutorInput::Begin);
    let mut waited = 0;
    let mut told = Vec::new();
    while waited < 10_000 {
        let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Away("it is damaged".to_owned())));
        if !agent_says(&commands).is_empty() {
            told.push(waited);
        }
        loop {
            let wait = u64::try_from((bench.wake.after.unwrap() - bench.steady).as_millis()).unwrap();
            waited += wait;
            if fetches(&bench.pass(wait)).len() == 1 {
                break;
            }
        }
    }
    assert!(matches!(told[..], [at] if (3_000..5_100).contains(&at)), "{told:?}");
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Ready));
    assert_eq!(agent_says(&commands), [AgentStatus::Idle], "as it was before");
}
