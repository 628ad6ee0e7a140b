//! Three controllers under schedules of faults, each of which follows from a seed. They are the product's own code on
//! virtual time, over a network and a log in memory.
//!
//! There are four scenes: short ones with clients that send commands and read ([`Scene::Commands`]), short ones with
//! clients that upload contents while hours pass ([`Scene::Uploads`]), some minutes with agents that claim leaderships, and
//! watchers of views and statuses ([`Scene::Watches`]), and clients that send many commands at once ([`Scene::Groups`]).
//! Each checks all laws that its actors can break; a witness notes
//! what happens in the log and at the controllers meanwhile.
//!
//! The seed decides what clients send, when, and to whom, and which faults happen when. It does not decide all: the order
//! of tasks that are ready at the same moment is that of the runtime, whose `select!` begins at a random branch, and
//! clients draw the jitter of their pauses and the ids of their requests. So a seed that fails once may need some
//! repetitions to fail again.
//!
//! `PERIAPT_SEEDS` sets the number of seeds, `PERIAPT_SEED` the first one; alone, it runs that one and prints what
//! happened. Many seeds say how far they are.

mod agents;
mod behind;
mod chance;
mod clock;
mod consistency;
mod crowds;
mod faults;
mod fold;
mod forwarding;
mod laws;
mod log;
mod programs;
mod progress;
mod scenes;
mod sessions;
mod uploads;
mod watching;
mod witness;
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

use self::{chance::Chance, log::LogDefect, programs::Programs, progress::Progress, world::World};

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
    /// A controller that leads confirms its term without asking the log.
    NoConfirmation,
    /// All entries are trimmed, whichever disks have them.
    TrimsAll,
    /// Old programs tell that they know the newest level.
    FalseLevel,
}

impl Scene {
    /// Returns the number of seeds, unless the environment says another one.
    fn seeds(self) -> u64 {
        match self {
            Self::Commands => 25,
            Self::Uploads | Self::Groups => 6,
            // Each takes some minutes of virtual time, and seconds of a processor.
            Self::Watches => 8,
        }
    }
}

impl Mutation {
    fn log_defect(self) -> LogDefect {
        match self {
            Self::NoFullLease => LogDefect::ShortLeases,
            Self::NoConfirmation => LogDefect::NoConfirmation,
            Self::TrimsAll => LogDefect::TrimsAll,
            _ => LogDefect::None,
        }
    }

    /// Returns the programs with which hosts begin: of one seed in four, old ones.
    fn programs(self, chance: &mut Chance) -> Programs {
        match (self, chance.one_in(4)) {
            (Self::FalseLevel, _) => Programs::OldThatTellNew,
            (_, true) => Programs::Old,
            (_, false) => Programs::New,
        }
    }
}

/// A scene that seeds run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Clients that send commands and read.
    Commands,
    /// Clients that upload contents and attach them, while hours pass.
    Uploads,
    /// Agents that claim leaderships, and watchers.
    Watches,
    /// Clients that send many commands at once.
    Groups,
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
            let defect = mutation.log_defect();
            let world = Arc::new(match scene {
                Scene::Commands | Scene::Uploads => {
                    let programs = mutation.programs(&mut chance);
                    World::with_programs(&mut chance, programs, defect)
                }
                Scene::Watches => World::with_agents(&mut chance, defect),
                Scene::Groups => World::new(&mut chance),
            });
            *told.lock() = Some(Arc::clone(&world));
            let checked: LocalBoxFuture<'_, _> = match scene {
                Scene::Commands => scenes::commands(world, chance, mutation).boxed_local(),
                Scene::Uploads => uploads::uploads(world, chance).boxed_local(),
                Scene::Watches => scenes::watches(world, chance, mutation).boxed_local(),
                Scene::Groups => crowds::crowd(world, chance).boxed_local(),
            };
            match tokio::time::timeout(WITHIN, checked).await {
                Ok(checked) => checked,
                Err(_) => Err("it does not end".to_owned()),
            }
        })
    }));
    let world = story.lock().take();
    let story = world.as_ref().map(|world| world.story()).unwrap_or_default();
    let failure = match ran {
        Ok(Ok(())) => return Ok(story),
        Ok(Err(law)) => law,
        Err(panic) => format!("a panic: {}", text_of(&*panic)),
    };
    // The witness may have seen earlier which law does not hold.
    let law = catch_unwind(AssertUnwindSafe(|| world.and_then(|world| world.judge().err())));
    let law = law.ok().flatten().filter(|law| *law != failure);
    let failure = law.map_or_else(|| failure.clone(), |law| format!("{law}\nand then: {failure}"));
    Err(format!("{failure}\n{story}"))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// Runs seeds on all processors, until one of them fails. Returns the number of those that hold, and the failure.
fn run_all(scene: Scene, seeds: std::ops::Range<u64>, mutation: Mutation) -> (u64, Option<(u64, String)>) {
    let (next, green) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let progress = Progress::of(seeds.end.saturating_sub(seeds.start));
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
                        Ok(_) => progress.tell(green.fetch_add(1, Ordering::Relaxed) + 1),
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
fn whatever_happens_to_uploads_each_registered_blob_exists_and_each_law_holds() {
    each_law_holds(Scene::Uploads, "whatever_happens_to_uploads");
}

#[test]
fn whatever_happens_to_agents_and_controllers_one_unit_leads_and_no_watcher_is_shown_less() {
    each_law_holds(Scene::Watches, "whatever_happens_to_agents");
}

#[test]
fn whatever_happens_to_groups_of_commands_each_law_holds() {
    each_law_holds(Scene::Groups, "whatever_happens_to_groups");
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
    println!("{scene:?}: {green} seeds hold");
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
fn a_controller_that_does_not_ask_the_log_for_its_term_answers_too_early() {
    is_found(Scene::Commands, Mutation::NoConfirmation, &["H2"]);
}

#[test]
fn a_log_that_is_trimmed_before_two_disks_have_it_is_found() {
    is_found(Scene::Commands, Mutation::TrimsAll, &["H8"]);
}

#[test]
fn a_controller_that_tells_a_level_which_its_program_does_not_know_is_given_entries_of_it() {
    is_found(Scene::Commands, Mutation::FalseLevel, &["H9"]);
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
