//! Three controllers under schedules of faults, each of which follows from a seed. They are the product's own code on
//! virtual time, over a network and a log in memory.
//!
//! The seed decides what clients send, when, and to whom, and which faults happen when. It does not decide all: the order
//! of tasks that are ready at the same moment is that of the runtime, whose `select!` begins at a random branch, and
//! clients draw the jitter of their pauses and the ids of their requests. So a seed that fails once may need some
//! repetitions to fail again.
//!
//! `PERIAPT_SEEDS` sets the number of seeds, `PERIAPT_SEED` the first one; alone, it runs that one and prints what
//! happened.

mod chance;
mod clock;
mod consistency;
mod faults;
mod fold;
mod laws;
mod log;
mod sessions;
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

use parking_lot::Mutex;
use periapt_client::{Client, Identity, Options, Seen};
use periapt_host_api::{ErrorCode, ModelName, command::ControllerCommand};

use self::{
    chance::Chance,
    fold::Fold,
    log::LogWeather,
    sessions::{CALLERS, History, Operation, Outcome, REGISTERS, Session},
    world::{End, World},
};

/// The number of seeds, unless the environment says another one.
const SEEDS: u64 = 25;

/// The number of seeds among which a mutation is found.
const MUTATED_SEEDS: u64 = 40;

/// The longest a seed takes, in virtual time.
const WITHIN: Duration = Duration::from_secs(1_800);

/// A deliberate defect of the clients, which takes from the controllers what a law rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    None,
    /// Clients do not tell what they have seen, so that no controller waits for it.
    NoWait,
    /// Requests whose outcome is not known are sent again as other requests.
    NoRequestId,
}

/// Runs one seed.
///
/// # Errors
/// The law that does not hold, and what happened.
fn run(seed: u64, mutation: Mutation) -> Result<String, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let story = Arc::new(Mutex::new(None));
    let told = Arc::clone(&story);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async move {
            let mut chance = Chance::new(seed);
            let world = Arc::new(World::new(&mut chance));
            *told.lock() = Some(Arc::clone(&world));
            match tokio::time::timeout(WITHIN, checked(world, chance, mutation)).await {
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

/// Lets clients work while faults happen, mends everything, and checks the laws.
async fn checked(world: Arc<World>, mut chance: Chance, mutation: Mutation) -> Result<(), String> {
    let history = Arc::new(History::default());
    for host in &world.hosts {
        world.start(host).await;
    }
    let mut session = |number: usize, mutation| Session {
        number,
        world: Arc::clone(&world),
        history: Arc::clone(&history),
        chance: chance.part(),
        mutation,
        seen: Seen::default(),
    };
    let mut first = session(CALLERS.len(), Mutation::None);
    for register in REGISTERS {
        let added = first.ends(Operation::Add(register.to_owned())).await;
        assert_eq!(added, Outcome::Done, "nothing disturbs the beginning");
    }
    world.settled().await?;
    let clients: Vec<_> =
        (0..CALLERS.len()).map(|number| tokio::spawn(session(number, mutation).run())).collect();
    let faults = [
        tokio::spawn(faults::of_controllers(Arc::clone(&world), faults::ALL, chance.part())),
        tokio::spawn(faults::of_controllers(Arc::clone(&world), faults::OF_LOGS, chance.part())),
        tokio::spawn(faults::of_the_network(Arc::clone(&world), chance.part())),
    ];
    for task in clients.into_iter().chain(faults) {
        task.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    world.heal().await;
    world.settled().await?;
    for operation in REGISTERS.map(Operation::Read).into_iter().chain([Operation::List]) {
        let read = first.ends(operation).await;
        assert!(!matches!(read, Outcome::Nothing), "nothing disturbs the end");
    }
    let disks = world.settled().await?;
    let fold = Fold::of(&world.archive.entries())?;
    let history = history.take();
    world.stop().await;
    laws::same_everywhere(&fold, &disks)?;
    laws::once(&fold, &history)?;
    laws::never_less(&fold, &history)?;
    consistency::check(&history)
}

/// Runs seeds on all processors, until one of them fails. Returns the number of those that hold, and the failure.
fn run_all(seeds: std::ops::Range<u64>, mutation: Mutation) -> (u64, Option<(u64, String)>) {
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
                    match run(seed, mutation) {
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
    let (first, seeds) = (number("PERIAPT_SEED"), number("PERIAPT_SEEDS"));
    if let (Some(seed), None) = (first, seeds) {
        match run(seed, Mutation::None) {
            Ok(story) => println!("{story}"),
            Err(law) => panic!("seed {seed}: {law}"),
        }
        return;
    }
    let first = first.unwrap_or(0);
    let (green, failure) = run_all(first..first + seeds.unwrap_or(SEEDS), Mutation::None);
    println!("{green} seeds");
    if let Some((seed, law)) = failure {
        panic!(
            "seed {seed}, after {green} that hold: {law}\nagain: PERIAPT_SEED={seed} cargo nextest run \
             -p periapt-controller --no-capture -E 'test(whatever_happens_to_controllers)'"
        );
    }
}

/// Checks that a mutation breaks one of these laws.
fn is_found(mutation: Mutation, laws: &[&str]) {
    let (_, failure) = run_all(0..MUTATED_SEEDS, mutation);
    let (_, told) = failure.unwrap_or_else(|| panic!("each law holds in spite of {mutation:?}"));
    assert!(laws.iter().any(|law| told.starts_with(law)), "{told}");
}

#[test]
fn a_client_that_does_not_tell_what_it_saw_is_shown_less() {
    is_found(Mutation::NoWait, &["H5"]);
}

#[test]
fn a_request_that_is_sent_again_with_another_id_is_carried_out_twice() {
    is_found(Mutation::NoRequestId, &["H4", "H5", "linearizability"]);
}

#[test]
fn a_client_that_a_stale_controller_refuses_asks_the_next_one_from_then_on() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(&mut Chance::new(0));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        let urls: Vec<_> = world.hosts.iter().map(|host| format!("http://{}", host.address)).collect();
        let addresses: Vec<_> = world.hosts.iter().map(|host| host.address).collect();
        // It makes one attempt, so that the next request is the one that goes elsewhere.
        let options = Options::in_memory(world.network.caller(CALLERS[0]), &addresses, Identity::Local);
        let client = Client::new(options).unwrap();
        client.models().await.unwrap();
        assert_eq!(client.urls().await, urls);

        world.hosts[0].cut_log();
        tokio::time::sleep(Duration::from_secs(8)).await;
        let refused = client.models().await.unwrap_err();
        assert_eq!(refused.refusal().unwrap().code, ErrorCode::TryAgain, "{refused}");
        client.models().await.unwrap();
        assert_eq!(client.urls().await, [&*urls[1], &urls[2], &urls[0]]);
        world.heal().await;
        client.models().await.unwrap();
        assert_eq!(client.urls().await[0], urls[1], "it has no reason to go back");
        world.stop().await;
    });
}

#[test]
fn a_leading_controller_stops_though_the_log_does_not_answer() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(&mut Chance::new(0));
        for host in &world.hosts[..2] {
            world.start(host).await;
            let caller = world.network.caller(CALLERS[0]);
            let options = Options::in_memory(caller, &[host.address], Identity::Local);
            let client = Client::new(options.with_retry_timeout(Duration::from_secs(5))).unwrap();
            client.models().await.unwrap();
        }
        // It goes on to lead. Within two seconds it lists the second controller, and waits for the log to take that.
        world.hosts[0].set_log(LogWeather { lost_calls: 100, ..LogWeather::default() });
        tokio::time::sleep(Duration::from_secs(5)).await;
        for host in &world.hosts[..2] {
            let stopped = tokio::time::timeout(Duration::from_secs(60), world.end(host, End::Stop));
            stopped.await.unwrap();
        }
    });
}

#[test]
fn a_controller_that_is_behind_waits_for_what_its_caller_saw_at_another_one() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new(&mut Chance::new(0)));
        for host in &world.hosts {
            world.start(host).await;
        }
        world.settled().await.unwrap();
        let client = |host: usize, seen: &Seen| {
            let caller = world.network.caller(CALLERS[0]);
            let options = Options::in_memory(caller, &[world.hosts[host].address], Identity::Local);
            Client::new(options.with_seen(seen.clone())).unwrap()
        };
        let stand_still =
            |is_paused| world.hosts[2].set_log(LogWeather { is_paused, ..LogWeather::default() });
        let (seen, nothing) = (Seen::default(), Seen::default());
        stand_still(true);
        let add = ControllerCommand::add_model(ModelName::new("m").unwrap());
        client(0, &seen).controller_command(add).await.unwrap();
        assert!(client(2, &nothing).models().await.unwrap().is_empty(), "it is behind");
        let before = nothing.position().unwrap();
        assert!(before.revision < seen.position().unwrap().revision);
        let waiting = tokio::spawn({
            let client = client(2, &seen);
            async move { client.models().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        stand_still(false);
        assert_eq!(waiting.await.unwrap().unwrap().len(), 1);

        // It does not wait for ever.
        stand_still(true);
        let add = ControllerCommand::add_model(ModelName::new("n").unwrap());
        client(0, &seen).controller_command(add).await.unwrap();
        let refused = client(2, &seen).models().await.unwrap_err();
        assert_eq!(refused.refusal().unwrap().code, ErrorCode::TryAgain, "{refused}");
        assert!(refused.to_string().contains("behind the others"), "{refused}");
        world.heal().await;
        world.stop().await;
    });
}
