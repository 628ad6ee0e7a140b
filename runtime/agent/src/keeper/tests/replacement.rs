//! Tests of when an agent fetches its next program.

use std::time::Duration;

use periapt_client::Addresses;
use periapt_host_api::{
    AgentName, Digest, LEVEL,
    program::{ProgramOffer, ProgramTarget},
};
use periapt_program::{Again, Programs, ServiceStart, begin};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::fake::FakeController;
use crate::{
    ControllerProbe,
    keeper::replacement::{Replacement, wait_after_put_off, wait_of},
};

const SECOND: Duration = Duration::from_secs(1);

/// Begins an agent in a new directory.
async fn programs(data: &std::path::Path) -> Programs {
    let again = Again { name: "periapt".into(), arguments: Vec::new() };
    let (name, controllers) = (agent(0), Addresses::read(&["https://a:1".to_owned()]).unwrap());
    let probe = ControllerProbe { name, data: data.to_owned(), controllers };
    let begun = begin(data, "1.0", &again, &probe, &CancellationToken::new()).await.unwrap();
    let ServiceStart::Serves(programs) = begun else { panic!("{begun:?}") };
    programs
}

fn agent(number: usize) -> AgentName {
    format!("host-{number}").parse().unwrap()
}

fn target(number: u64) -> ProgramTarget {
    let offer = ProgramOffer {
        digest: Digest::of(b"next"),
        version: "2.0".into(),
        architecture: std::env::consts::ARCH.into(),
        level: LEVEL,
    };
    ProgramTarget { offer, size: 4, number, released: true }
}

#[tokio::test(start_paused = true)]
async fn a_program_is_fetched_after_the_agents_own_wait_and_again_after_growing_pauses() {
    let data = tempfile::tempdir().unwrap();
    let controller = FakeController::without_models();
    let within = 600 * SECOND;
    let mut replacement = Replacement::new(controller.clone(), agent(0), Some(programs(data.path()).await));
    let begun = Instant::now();
    while controller.fetched_programs.lock().len() < 9 {
        // The same target with each frame begins nothing anew.
        replacement.look(Some(&target(4)), within);
        sleep(SECOND / 10).await;
    }
    let fetched = controller.fetched_programs.lock().clone();
    let (waited, own) = (fetched[0] - begun, wait_of(&agent(0), 4, within));
    assert!(own > SECOND && waited >= own && waited < own + SECOND / 2, "{waited:?} of {own:?}");
    let longest = 120 * SECOND;
    for (index, times) in fetched.windows(2).enumerate() {
        let (pause, least) = (times[1] - times[0], longest.min(SECOND * (1 << index)));
        assert!(pause >= least && pause < least + least / 4 + SECOND / 2, "{index}: {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_target_replaces_the_one_that_is_waited_for() {
    let data = tempfile::tempdir().unwrap();
    let controller = FakeController::without_models();
    let programs = programs(data.path()).await;
    let mut replacement = Replacement::new(controller.clone(), agent(0), Some(programs));
    let begun = Instant::now();
    replacement.look(Some(&target(4)), 1_000_000 * SECOND);
    replacement.look(Some(&target(5)), Duration::ZERO);
    while controller.fetched_programs.lock().is_empty() {
        sleep(SECOND / 10).await;
    }
    assert!(begun.elapsed() < SECOND, "a few agents do not wait");
}

#[test]
fn agents_spread_evenly_and_in_another_order_for_each_target() {
    let within = 1_000 * SECOND;
    let waits = |target| (0..1_000).map(|number| wait_of(&agent(number), target, within)).collect::<Vec<_>>();
    let (first, second) = (waits(1), waits(2));
    for waits in [&first, &second] {
        let mut tenths = [0; 10];
        for wait in waits {
            assert!(*wait <= within);
            tenths[usize::try_from(wait.as_secs() / 100).unwrap().min(9)] += 1;
        }
        assert!(tenths.iter().all(|agents| (60..140).contains(agents)), "{tenths:?}");
    }
    assert_ne!(first, second);
    assert_eq!(first, waits(1), "an agent that starts again waits as long");
    assert!((0..1_000).all(|number| wait_of(&agent(number), 1, Duration::ZERO).is_zero()));
}

#[test]
fn the_pause_after_a_trial_that_was_put_off_doubles_up_to_an_hour() {
    let pauses = [0, 1, 2, 3, 9, 10, u32::MAX].map(wait_after_put_off).map(|pause| pause.as_secs());
    assert_eq!(pauses, [0, 10, 20, 40, 2_560, 3_600, 3_600]);
}
