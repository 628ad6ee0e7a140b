//! The scenes of a simulation: what runs beside the controllers, which faults happen, and which laws are checked then.

use std::{sync::Arc, time::Duration};

use periapt_client::{Client, Identity, Options, Seen};
use periapt_host_api::{
    AgentName, ModelName, ModelUuid,
    command::{Answer, Command, ControllerCommand, Deploy, Placement},
};

use super::{
    Mutation,
    agents::{self, AGENTS, Agents},
    chance::Chance,
    consistency, faults,
    fold::Fold,
    laws,
    sessions::{CALLERS, History, Operation, Outcome, REGISTERS, Session},
    uploads,
    watching::{self, Sights, Watcher},
    world::World,
};
use crate::fixture;

/// The faults of each kind in a scene of watches, which takes some minutes.
const FAULTS_OF_A_SCENE: usize = 45;

/// Lets clients work while faults happen, mends everything, and checks the laws.
pub(super) async fn commands(
    world: Arc<World>,
    mut chance: Chance,
    mutation: Mutation,
) -> Result<(), String> {
    let history = Arc::new(History::default());
    world.begin().await;
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
        tokio::spawn(faults::of_controllers(
            Arc::clone(&world),
            faults::ALL,
            faults::OF_CONTROLLERS,
            chance.part(),
        )),
        tokio::spawn(faults::of_controllers(
            Arc::clone(&world),
            faults::OF_LOGS,
            faults::OF_CONTROLLERS,
            chance.part(),
        )),
        tokio::spawn(faults::of_the_network(Arc::clone(&world), faults::OF_THE_NETWORK, chance.part())),
    ];
    for task in clients.into_iter().chain(faults) {
        task.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    world.heal().await;
    world.upgrade_all().await?;
    world.settled().await?;
    for operation in REGISTERS.map(Operation::Read).into_iter().chain([Operation::List]) {
        let read = first.ends(operation).await;
        assert!(!matches!(read, Outcome::Nothing), "nothing disturbs the end");
    }
    let disks = world.settled().await?;
    world.see_blobs();
    let (fold, events) = (Fold::of(&world.archive.entries())?, world.witness.events());
    let history = history.take();
    world.stop().await;
    laws::of_events(&events, &fold, world.bounds)?;
    laws::same_everywhere(&fold, &disks)?;
    laws::once(&fold, &history)?;
    laws::never_less(&fold, &history)?;
    consistency::check(&history)
}

/// Lets agents claim leaderships and watchers watch for some minutes, while faults happen, and checks the laws.
pub(super) async fn watches(world: Arc<World>, mut chance: Chance, mutation: Mutation) -> Result<(), String> {
    for host in &world.hosts {
        world.start(host).await;
    }
    world.settled().await?;
    let model = deployed(&world).await;
    world.settled().await?;
    let rates = match mutation {
        Mutation::SlowAgents => 860..=900,
        _ => 980..=1_020,
    };
    let agents = Arc::new(Agents::new(&world, model, rates, &mut chance));
    let sights = Arc::new(Sights::default());
    let mut watcher = |number| Watcher {
        number,
        world: Arc::clone(&world),
        model,
        sights: Arc::clone(&sights),
        chance: chance.part(),
        mutation,
    };
    let mut tasks: Vec<_> = AGENTS
        .into_iter()
        .enumerate()
        .map(|(number, agent)| tokio::spawn(watcher(number).of_view(agent.parse().unwrap())))
        .collect();
    for (number, caller) in CALLERS.into_iter().take(2).enumerate() {
        tasks.push(tokio::spawn(watcher(AGENTS.len() + number).of_status(caller)));
    }
    tasks.push(tokio::spawn(watcher(AGENTS.len() + 2).of_assignments(AGENTS[0].parse().unwrap())));
    agents.start_all();
    let world_of = || Arc::clone(&world);
    tasks.extend([
        tokio::spawn(faults::of_controllers(world_of(), faults::ALL, FAULTS_OF_A_SCENE, chance.part())),
        tokio::spawn(faults::of_controllers(world_of(), faults::OF_LOGS, FAULTS_OF_A_SCENE, chance.part())),
        tokio::spawn(faults::of_the_network(world_of(), 2 * FAULTS_OF_A_SCENE, chance.part())),
        tokio::spawn(Arc::clone(&agents).faults(chance.part())),
        tokio::spawn(Arc::clone(&agents).faults(chance.part())),
    ]);
    for task in tasks {
        task.await.map_err(|error| format!("a task ended: {error}"))?;
    }
    world.heal().await;
    world.settled().await?;
    let beliefs = agents.stop().await;
    let disks = world.settled().await?;
    world.see_blobs();
    let (fold, events) = (Fold::of(&world.archive.entries())?, world.witness.events());
    world.stop().await;
    let sights = sights.take();
    world.note(format_args!("{} times of leadership, and {} sights", beliefs.len(), sights.len()));
    laws::of_events(&events, &fold, world.bounds)?;
    laws::same_everywhere(&fold, &disks)?;
    agents::one_at_a_time(&beliefs)?;
    watching::never_less(&fold, &model, &sights)
}

/// Deploys an application with a unit on each agent, and waits until each may watch its view.
pub(super) async fn deployed(world: &World) -> ModelUuid {
    let addresses: Vec<_> = world.hosts.iter().map(|host| host.address).collect();
    let client = |caller: &str, identity| {
        let options = Options::in_memory(world.network.caller(caller), &addresses, identity);
        Client::new(options.with_retry_timeout(Duration::from_secs(5))).unwrap()
    };
    let operator = client(CALLERS[0], Identity::Local);
    let charm = uploads::charm(&operator, fixture::charm()).await;
    let add = ControllerCommand::add_model(ModelName::new("watched").unwrap());
    let Answer::Model { uuid } = operator.controller_command(add).await.unwrap() else { panic!("no model") };
    let agents = AGENTS.map(|name| AgentName::new(name).unwrap());
    let clients: Vec<_> =
        agents.iter().map(|agent| client(agent.as_str(), Identity::Agent(agent.clone()))).collect();
    for (agent, client) in agents.iter().zip(&clients) {
        client.register(agent, &fixture::host()).await.unwrap();
    }
    let placement = agents.iter().cloned().map(Placement::Agent).collect();
    let deploy = Deploy { placement, ..Deploy::of(charm, 3) };
    operator.command(&uuid.into(), Command::Deploy(deploy)).await.unwrap();
    for (agent, client) in agents.iter().zip(&clients) {
        while client.watch(agent, &uuid, None).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    uuid
}
