//! Three controllers under schedules of faults, each of which follows from a seed. They are the product's own code on
//! virtual time, over a network and a log in memory.
//!
//! There are two scenes: short ones with clients that send commands and read ([`Scene::Commands`]), and some minutes with
//! agents that claim leaderships, and watchers of views and statuses ([`Scene::Watches`]).
//!
//! The seed decides what clients send, when, and to whom, and which faults happen when. It does not decide all: the order
//! of tasks that are ready at the same moment is that of the runtime, whose `select!` begins at a random branch, and
//! clients draw the jitter of their pauses and the ids of their requests. So a seed that fails once may need some
//! repetitions to fail again.
//!
//! `PERIAPT_SEEDS` sets the number of seeds, `PERIAPT_SEED` the first one; alone, it runs that one and prints what
//! happened.

mod agents;
mod behind;
mod chance;
mod clock;
mod consistency;
mod faults;
mod fold;
mod laws;
mod log;
mod scenes;
mod sessions;
mod watching;
mod world;

use std::{
    any::Any,
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use futures_util::{FutureExt as _, future::LocalBoxFuture};
use parking_lot::Mutex;

use self::{
    chance::Chance,
    world::{Takeovers, World},
};

/// The number of seeds among which a mutation is found.
const MUTATED_SEEDS: u64 = 40;

/// The longest a seed takes, in virtual time.
const WITHIN: Duration = Duration::from_secs(1_800);

/// A deliberate defect, which takes away what a law rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    None,
    /// Clients do not tell what they have seen, so that no controller waits for it.
    NoWait,
    /// Requests whose outcome is not known are sent again as other requests.
    NoRequestId,
    /// Watchers tell no position, and not what they have seen.
    NoPosition,
    /// A controller that begins to lead gives the stored leaders no full lease.
    NoFullLease,
    /// Clocks of agents go 10 % too slow or more, and the controller keeps leases 5 % longer.
    SlowAgents,
}

impl Scene {
    /// Returns the number of seeds, unless the environment says another one.
    fn seeds(self) -> u64 {
        match self {
            Self::Commands => 25,
            // Each takes some minutes of virtual time, and seconds of a processor.
            Self::Watches => 8,
        }
    }
}

impl Mutation {
    fn takeovers(self) -> Takeovers {
        match self {
            Self::NoFullLease => Takeovers::WithShortLeases,
            _ => Takeovers::WithFullLeases,
        }
    }
}

/// A scene that seeds run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Clients that send commands and read.
    Commands,
    /// Agents that claim leaderships, and watchers.
    Watches,
}

/// Runs one seed.
///
/// # Errors
/// The law that does not hold, and what happened.
fn run(scene: Scene, seed: u64, mutation: Mutation) -> Result<String, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let story = Arc::new(Mutex::new(None));
    let told = Arc::clone(&story);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async move {
            let mut chance = Chance::new(seed);
            let world = Arc::new(match scene {
                Scene::Commands => World::new(&mut chance),
                Scene::Watches => World::with_agents(&mut chance, mutation.takeovers()),
            });
            *told.lock() = Some(Arc::clone(&world));
            let checked: LocalBoxFuture<'_, _> = match scene {
                Scene::Commands => scenes::commands(world, chance, mutation).boxed_local(),
                Scene::Watches => scenes::watches(world, chance, mutation).boxed_local(),
            };
            match tokio::time::timeout(WITHIN, checked).await {
                Ok(checked) => checked,
                Err(_) => Err("it does not end".to_owned()),
            }
        })
    }));
    let world = story.lock().take();
    let story = world.map(|world| world.story()).unwrap_or_default();
    match ran {
        Ok(Ok(())) => Ok(story),
        Ok(Err(law)) => Err(format!("{law}\n{story}")),
        Err(panic) => Err(format!("a panic: {}\n{story}", text_of(&*panic))),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// Runs seeds on all processors, until one of them fails. Returns the number of those that hold, and the failure.
fn run_all(scene: Scene, seeds: std::ops::Range<u64>, mutation: Mutation) -> (u64, Option<(u64, String)>) {
    let (next, green) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let failure = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while failure.lock().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    match run(scene, seed, mutation) {
                        Ok(_) => drop(green.fetch_add(1, Ordering::Relaxed)),
                        Err(law) => drop(failure.lock().get_or_insert((seed, law))),
                    }
                }
            });
        }
    });
    (green.into_inner(), failure.into_inner())
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_happens_to_controllers_lines_and_clocks_each_law_holds() {
    each_law_holds(Scene::Commands, "whatever_happens_to_controllers");
}

#[test]
fn whatever_happens_to_agents_and_controllers_one_unit_leads_and_no_watcher_is_shown_less() {
    each_law_holds(Scene::Watches, "whatever_happens_to_agents");
}

/// Runs the seeds that the environment says.
#[expect(clippy::print_stdout, reason = "who runs a seed reads what happened")]
fn each_law_holds(scene: Scene, test: &str) {
    let (first, seeds) = (number("PERIAPT_SEED"), number("PERIAPT_SEEDS"));
    if let (Some(seed), None) = (first, seeds) {
        match run(scene, seed, Mutation::None) {
            Ok(story) => println!("{story}"),
            Err(law) => panic!("seed {seed}: {law}"),
        }
        return;
    }
    let first = first.unwrap_or(0);
    let (green, failure) =
        run_all(scene, first..first + seeds.unwrap_or_else(|| scene.seeds()), Mutation::None);
    println!("{green} seeds");
    if let Some((seed, law)) = failure {
        panic!(
            "seed {seed}, after {green} that hold: {law}\nagain: PERIAPT_SEED={seed} cargo nextest run \
             -p periapt-controller --no-capture -E 'test({test})'"
        );
    }
}

/// Checks that a mutation breaks one of these laws.
fn is_found(scene: Scene, mutation: Mutation, laws: &[&str]) {
    let (_, failure) = run_all(scene, 0..MUTATED_SEEDS, mutation);
    let (_, told) = failure.unwrap_or_else(|| panic!("each law holds in spite of {mutation:?}"));
    assert!(laws.iter().any(|law| told.starts_with(law)), "{told}");
}

#[test]
fn a_client_that_does_not_tell_what_it_saw_is_shown_less() {
    is_found(Scene::Commands, Mutation::NoWait, &["H5"]);
}

#[test]
fn a_request_that_is_sent_again_with_another_id_is_carried_out_twice() {
    is_found(Scene::Commands, Mutation::NoRequestId, &["H4", "H5", "linearizability"]);
}

#[test]
fn a_watcher_that_does_not_tell_its_position_is_shown_less() {
    is_found(Scene::Watches, Mutation::NoPosition, &["H5"]);
}

#[test]
fn a_takeover_that_gives_no_full_lease_lets_two_units_lead() {
    is_found(Scene::Watches, Mutation::NoFullLease, &["H6"]);
}

#[test]
fn clocks_that_differ_by_more_than_leases_allow_let_two_units_lead() {
    is_found(Scene::Watches, Mutation::SlowAgents, &["H6"]);
}
