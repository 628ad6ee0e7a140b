//! Watchers of a follower: agents whose runners watch models, and the memory that each watcher costs the controller.

use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use periapt_client::{Client, NdJson};
use periapt_host_api::{
    Revision,
    api::ModelSelector,
    command::{Command, Deploy, Placement},
    view::Frame,
};
use periapt_tests::{JoinedAgent, MemoryUse};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    site::{Site, applied},
    times::Times,
};

/// The number of agents. Each has one connection, with a stream for each model that it has units of.
const AGENTS: usize = 16;

/// The number of models, each with a unit on each agent.
const MODELS: usize = 640;

/// The number of models that are changed while their watchers wait.
const CHANGED: usize = 100;

/// The time to wait for freed memory to return to the system: the controller checks every five seconds.
const GIVEN_BACK: Duration = Duration::from_secs(12);

/// The longest wait for a frame: heartbeats come more often.
const FRAME_WITHIN: Duration = Duration::from_secs(60);

/// The result of the measurement.
pub(crate) struct Watchers {
    /// The number of watchers.
    pub(crate) count: usize,
    /// The controller's memory for each of them, in bytes.
    pub(crate) each: f64,
    /// The times from a command's answer by the leader until all watchers of its model at the follower have its frame.
    pub(crate) told: Times,
}

impl Watchers {
    /// Opens the watches at a follower, and changes some models.
    pub(crate) async fn measured(site: &Site) -> anyhow::Result<Self> {
        let leader = site.leader().await?;
        let follower = (0..3).find(|host| *host != leader).context("a follower")?;
        let operator = site.client(leader)?;
        let (url, trust) = site.over_tls(follower)?;
        let mut agents = Vec::new();
        for number in 0..AGENTS {
            let name = format!("agent-{number}").parse()?;
            agents.push(JoinedAgent::new(&operator, (&url, &trust), name).await?);
        }
        let charm = site.charm(leader, &operator).await?;
        let placement: Vec<_> = agents.iter().map(|agent| Placement::Agent(agent.name.clone())).collect();
        let mut models = Vec::new();
        for _ in 0..MODELS {
            let model = site.model(&operator, "watched").await?;
            let deploy = Deploy { placement: placement.clone(), ..Deploy::of(charm, AGENTS.try_into()?) };
            operator.command(&model, Command::Deploy(deploy)).await?;
            models.push(model);
        }
        site.settled().await?;
        tokio::time::sleep(GIVEN_BACK).await;
        let before = held(site, follower)?;
        let (mut watches, mut readers) = (Vec::new(), JoinSet::new());
        for model in &models {
            let ModelSelector::Uuid(uuid) = model else { anyhow::bail!("a model without an identity") };
            let mut of_model = Vec::new();
            for agent in &agents {
                let frames = agent.client.watch(&agent.name, uuid, None).await?;
                let (sender, mut of_agent) = watch::channel(0);
                readers.spawn(read(frames, sender));
                next(&mut of_agent).await?;
                of_model.push(of_agent);
            }
            watches.push(of_model);
        }
        tokio::time::sleep(GIVEN_BACK).await;
        let count = AGENTS * MODELS;
        let each = held(site, follower)?.saturating_sub(before) as f64 / count as f64;
        let (mut told, client) = (Times::default(), site.client(follower)?);
        for (model, mut of_model) in models.iter().zip(watches).step_by(MODELS / CHANGED) {
            of_model.iter_mut().for_each(watch::Receiver::mark_unchanged);
            let revision = changed(&operator, model).await?;
            let began = std::time::Instant::now();
            for of_agent in &mut of_model {
                next(of_agent).await?;
            }
            told.push(began.elapsed());
            applied(&client, revision, std::time::Instant::now()).await?;
        }
        Ok(Self { count, each, told })
    }
}

/// Reads a watch to its end, and counts the frames that are no heartbeats. What nobody reads would take the window of the
/// connection, which an agent's watches share.
async fn read(mut frames: NdJson<Frame>, told: watch::Sender<u64>) {
    while let Some(Ok(frame)) = frames.next().await {
        if has_content(&frame) {
            told.send_modify(|count| *count += 1);
        }
    }
}

/// Changes a setting of a model that agents are told of, and returns the revision.
async fn changed(operator: &Client, model: &ModelSelector) -> anyhow::Result<Revision> {
    let set = [("automatically-retry-hooks".to_owned(), "false".to_owned())].into();
    let results = operator.commands(model, vec![Command::SetModelConfig { set, reset: Vec::new() }]).await?;
    Ok(results.revision)
}

/// Waits for the next frame of a watch that is no heartbeat.
async fn next(told: &mut watch::Receiver<u64>) -> anyhow::Result<()> {
    let next = tokio::time::timeout(FRAME_WITHIN, told.changed()).await;
    next.context("no frame")?.context("the watch ended")
}

/// Returns false for a heartbeat.
fn has_content(frame: &Frame) -> bool {
    !frame.puts.is_empty() || !frame.deletes.is_empty()
}

fn held(site: &Site, host: usize) -> anyhow::Result<u64> {
    Ok(MemoryUse::by(site.host(host)?)?.controller())
}
