//! Clients that send many commands at once to any of the controllers, so that followers have several groups of them under
//! way while faults happen.

use std::{sync::Arc, time::Duration};

use periapt_client::{Client, ClientError, Identity, Options, RequestOutcome, Seen};
use periapt_host_api::{
    ErrorCode, ModelName,
    api::ModelSelector,
    command::{Command, CommandResult, ControllerCommand},
};
use tokio::time::sleep;

use super::{chance::Chance, faults, fold::Fold, laws, sessions::CALLERS, world::World};

/// The requests of each client.
const REQUESTS: usize = 6;

/// The most commands of a request. All clients are one user, of whom controllers keep 2,048 answers.
const MOST: usize = 60;

/// The setting that is a client's register. It has no effect.
const SETTING: &str = "apt-mirror";

/// The writes of one client, as it was told about them.
#[derive(Debug, Default)]
struct Told {
    done: usize,
    unknown: usize,
}

/// Returns the model whose setting is the register of a client. No other client writes it.
fn register(number: usize) -> String {
    format!("crowd-{number}")
}

/// Returns a client that tries the controllers in this order.
fn client(world: &World, (number, seen): (usize, &Seen), order: &[usize]) -> Client {
    let addresses: Vec<_> = order.iter().map(|host| world.hosts[*host].address).collect();
    let mut options = Options::in_memory(world.network.caller(CALLERS[number]), &addresses, Identity::Local)
        .with_seen(seen.clone())
        .with_retry_timeout(Duration::from_secs(5))
        .with_busy_retry_timeout(Duration::from_secs(5))
        .with_unanswered_retry_timeout(Duration::from_secs(20));
    options.answer_within = Duration::from_secs(8);
    Client::new(options).unwrap()
}

/// Returns true if a request that got this error may have been carried out.
fn is_in_doubt(error: &ClientError) -> bool {
    match error {
        ClientError::Refused(refusal) if refusal.code == ErrorCode::OutcomeUnknown => true,
        ClientError::Refused(refusal) if refusal.code.is_temporary() => false,
        ClientError::Unreachable { outcome, .. } => *outcome == RequestOutcome::Unknown,
        ClientError::NoneReached(_) => false,
        _ => panic!("{error}"),
    }
}

/// Sends requests of many writes to the client's register, until one is in doubt: it may be carried out later.
///
/// # Errors
/// H5: the client reads another value than the one that it wrote last.
async fn write(world: Arc<World>, number: usize, mut chance: Chance) -> Result<Told, String> {
    let (model, seen): (ModelSelector, _) = (register(number).parse().unwrap(), Seen::default());
    let mut told = Told::default();
    for request in 0..REQUESTS {
        sleep(chance.millis(0..1_500)).await;
        let client = client(&world, (number, &seen), &chance.order(world.hosts.len()));
        let count = 1 + chance.below(MOST);
        let write = |index: usize| {
            let set = [(SETTING.to_owned(), format!("{request}-{index}"))].into();
            Command::SetModelConfig { set, reset: Vec::new() }
        };
        let results = match client.commands(&model, (0..count).map(write).collect()).await {
            Ok(results) => results.results,
            Err(error) if is_in_doubt(&error) => {
                told.unknown += count;
                break;
            }
            Err(_) => continue,
        };
        let mut done = 0;
        for result in &results {
            match result {
                CommandResult::Ok(_) => done += 1,
                CommandResult::Error(refusal) if refusal.code == ErrorCode::OutcomeUnknown => {
                    told.unknown += 1;
                }
                CommandResult::Error(refusal) => assert!(refusal.code.is_temporary(), "{refusal}"),
            }
        }
        told.done += done;
        world.note(format_args!("client {number}: {done} of {count} are done, {} unknown", told.unknown));
        if told.unknown > 0 {
            break;
        }
        let Ok(config) = client.model_config(&model).await else { continue };
        let shown = config.0.get(SETTING).and_then(|setting| setting.value.as_str());
        let last = format!("{request}-{}", count - 1);
        if done == count && shown != Some(&*last) {
            return Err(format!("H5: client {number} wrote {last} last, and is shown {shown:?}"));
        }
    }
    Ok(told)
}

/// Lets the clients write while faults happen, mends everything, and checks the laws.
pub(super) async fn crowd(world: Arc<World>, mut chance: Chance) -> Result<(), String> {
    for host in &world.hosts {
        world.start(host).await;
    }
    let first = client(&world, (0, &Seen::default()), &[0, 1, 2]);
    for number in 0..CALLERS.len() {
        let name = ModelName::new(&register(number)).unwrap();
        first.controller_command(ControllerCommand::add_model(name)).await.unwrap();
    }
    world.settled().await?;
    let clients: Vec<_> = (0..CALLERS.len())
        .map(|number| tokio::spawn(write(Arc::clone(&world), number, chance.part())))
        .collect();
    let of_controllers = |kinds, chance| {
        tokio::spawn(faults::of_controllers(Arc::clone(&world), kinds, faults::OF_CONTROLLERS, chance))
    };
    let faults = [
        of_controllers(faults::ALL, chance.part()),
        of_controllers(faults::OF_LOGS, chance.part()),
        tokio::spawn(faults::of_the_network(Arc::clone(&world), faults::OF_THE_NETWORK, chance.part())),
    ];
    let mut told = Vec::new();
    for client in clients {
        told.push(client.await.map_err(|error| format!("a client ended: {error}"))??);
    }
    for fault in faults {
        fault.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    world.heal().await;
    let disks = world.settled().await?;
    world.see_blobs();
    let (fold, events) = (Fold::of(&world.archive.entries())?, world.witness.events());
    world.stop().await;
    laws::of_events(&events, &fold, world.bounds)?;
    laws::same_everywhere(&fold, &disks)?;
    for (number, Told { done, unknown }) in told.into_iter().enumerate() {
        let written = fold.writes.get(&register(number)).copied().unwrap_or_default();
        if !(done..=done + unknown).contains(&written) {
            return Err(format!(
                "H4: of client {number}, {done} writes were acknowledged and {unknown} may have been carried out, the \
                 log has {written}"
            ));
        }
    }
    Ok(())
}
