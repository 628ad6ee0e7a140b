//! Clients that upload contents of resources, attach them and leave them unused, while hours pass and controllers forget and
//! delete what nobody uses.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use periapt_client::{Client, Identity, Options, Seen};
use periapt_host_api::{
    Digest, ModelName, ModelUuid,
    api::ModelSelector,
    command::{Answer, Command, ControllerCommand, Deploy},
    resource::ResourceUpload,
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    chance::Chance,
    faults,
    fold::Fold,
    laws,
    sessions::CALLERS,
    witness::{Event, blobs_below},
    world::{Host, World},
};
use crate::fixture::{self, application};

/// The contents that clients upload, again and again.
const CONTENTS: usize = 40;

/// The uploads of each client.
const UPLOADS: usize = 28;

/// The number of times at which some minutes pass on all hosts. Ten of them or more make the hour after which an unused blob
/// is deleted. So that hour takes half a minute of the simulation at least, and no registration is under way for as long.
const SKIPS: usize = 36;

/// The faults of each kind.
const FAULTS: usize = 18;

/// The interval at which the witness looks at the disks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The longest wait for all controllers to have each registered blob, once nothing disturbs them any more.
const FETCHED_WITHIN: Duration = Duration::from_secs(120);

/// Uploads a charm. The process that checks it takes its time.
pub(super) async fn charm(operator: &Client, archive: Bytes) -> Digest {
    tokio::time::resume();
    let charm = operator.upload_charm(archive).await.unwrap().digest;
    tokio::time::pause();
    charm
}

/// Lets clients upload contents while hours pass and faults happen, mends everything, and checks the laws.
pub(super) async fn uploads(world: Arc<World>, mut chance: Chance) -> Result<(), String> {
    world.begin().await;
    for host in &world.hosts {
        world.start(host).await;
    }
    world.settled().await?;
    let model = deployed(&world).await;
    world.settled().await?;
    let mut tasks: Vec<_> = (0..CALLERS.len())
        .map(|number| {
            let (world, seen) = (Arc::clone(&world), Seen::default());
            tokio::spawn(Uploader { number, world, model, chance: chance.part(), seen }.run())
        })
        .collect();
    let world_of = || Arc::clone(&world);
    tasks.extend([
        tokio::spawn(faults::of_controllers(world_of(), faults::ALL, FAULTS, chance.part())),
        tokio::spawn(faults::of_controllers(world_of(), faults::OF_LOGS, FAULTS, chance.part())),
        tokio::spawn(faults::of_the_network(world_of(), FAULTS, chance.part())),
        tokio::spawn(time_passes(world_of(), chance.part())),
    ]);
    let looks = tokio::spawn(look(world_of()));
    for task in tasks {
        task.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    world.heal().await;
    world.upgrade_all().await?;
    all_have_all(&world).await?;
    looks.abort();
    let disks = world.settled().await?;
    world.see_blobs();
    let (fold, events) = (Fold::of(&world.archive.entries())?, world.witness.events());
    world.stop().await;
    world.note(format_args!("{} times a blob was deleted", deletions(&events)));
    laws::of_events(&events, &fold, world.bounds)?;
    laws::same_everywhere(&fold, &disks)
}

/// Deploys an application with a resource, and without units.
async fn deployed(world: &World) -> ModelUuid {
    let addresses: Vec<_> = world.hosts.iter().map(|host| host.address).collect();
    let options = Options::in_memory(world.network.caller(CALLERS[0]), &addresses, Identity::Local);
    let operator = Client::new(options.with_retry_timeout(Duration::from_secs(5))).unwrap();
    let charm = charm(&operator, fixture::charm_with_resources()).await;
    let add = ControllerCommand::add_model(ModelName::new("stocked").unwrap());
    let Answer::Model { uuid } = operator.controller_command(add).await.unwrap() else { panic!("no model") };
    operator.command(&uuid.into(), Command::Deploy(Deploy::of(charm, 0))).await.unwrap();
    uuid
}

/// One client.
struct Uploader {
    number: usize,
    world: Arc<World>,
    model: ModelUuid,
    chance: Chance,
    seen: Seen,
}

impl Uploader {
    async fn run(mut self) {
        let selector = ModelSelector::from(self.model);
        for _ in 0..UPLOADS {
            sleep(self.chance.millis(100..6_000)).await;
            let client = self.client();
            let content = Bytes::from(vec![self.chance.below(CONTENTS) as u8; 2_000]);
            let digest = Digest::of(&content);
            let pieces = || stream::iter([Ok(content.clone())]);
            // A line may be silent for longer than its client waits.
            let uploaded = timeout(Duration::from_secs(60), client.upload_resource(&digest, pieces)).await;
            let is_there = matches!(uploaded, Ok(Ok(_)));
            self.tell(format_args!(
                "uploads {}: {}",
                digest.short(),
                if is_there { "done" } else { "not known" }
            ));
            if is_there && self.chance.one_in(3) {
                sleep(self.chance.millis(0..2_000)).await;
                let upload = ResourceUpload { digest, filename: None, reference: None };
                let (application, resource) = (application("stocked"), "data".parse().unwrap());
                let attach = Command::AttachResource { application, resource, upload };
                let attached = timeout(Duration::from_secs(60), client.command(&selector, attach)).await;
                self.tell(format_args!("attaches {}: {attached:?}", digest.short()));
            }
        }
    }

    /// Notes something, and what this client has been shown.
    fn tell(&self, text: std::fmt::Arguments<'_>) {
        self.world.note(format_args!("client {} {text}", self.number));
        if let Some(position) = self.seen.position() {
            self.world.witness.note(Event::Shown { to: self.number, position: position.revision });
        }
    }

    /// Returns a client that tries the controllers in some order.
    fn client(&mut self) -> Client {
        let hosts = &self.world.hosts;
        let order = self.chance.order(hosts.len());
        let addresses: Vec<SocketAddr> = order.iter().map(|index| hosts[*index].address).collect();
        let caller = self.world.network.caller(CALLERS[self.number]);
        let mut options = Options::in_memory(caller, &addresses, Identity::Local)
            .with_seen(self.seen.clone())
            .with_retry_timeout(Duration::from_secs(5))
            .with_busy_retry_timeout(Duration::from_secs(5))
            .with_unanswered_retry_timeout(Duration::from_secs(20));
        options.answer_within = Duration::from_secs(8);
        Client::new(options).unwrap()
    }
}

/// Lets some time pass on all hosts, again and again.
async fn time_passes(world: Arc<World>, mut chance: Chance) {
    for _ in 0..SKIPS {
        sleep(chance.millis(3_000..5_000)).await;
        world.skip(Duration::from_secs(180 + chance.below(181) as u64));
    }
}

/// Looks at the disks, for ever.
async fn look(world: Arc<World>) {
    loop {
        world.see_blobs();
        sleep(LOOK_EVERY).await;
    }
}

/// Waits until each host has all blobs that are registered.
///
/// # Errors
/// H7: one lacks some for too long.
async fn all_have_all(world: &World) -> Result<(), String> {
    let until = Instant::now() + FETCHED_WITHIN;
    loop {
        let registered = Fold::of(&world.archive.entries())?.registered(world.archive.end());
        let lacks = |host: &&Host| {
            let held = blobs_below(&world.directory(host.name));
            !registered.is_subset(&held)
        };
        let Some(host) = world.hosts.iter().find(lacks) else { return Ok(()) };
        if Instant::now() > until {
            return Err(format!("H7: {} does not fetch the registered blobs that it lacks", host.name));
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Returns the number of times at which a blob was on no disk any more.
fn deletions(events: &[Event]) -> usize {
    let seen = events.iter().filter_map(|event| match event {
        Event::Blobs { held, .. } => Some(held.iter().flatten().copied().collect::<BTreeSet<Digest>>()),
        _ => None,
    });
    let (mut before, mut deleted) = (BTreeSet::new(), 0);
    for now in seen {
        deleted += before.difference(&now).count();
        before = now;
    }
    deleted
}
