//! Commands of concurrent clients, each with its own connection and model.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::future::try_join_all;
use periapt_client::Client;
use periapt_host_api::{Revision, api::ModelSelector, command::Command};
use periapt_tests::Acknowledged;
use tokio::task::JoinSet;

use crate::{
    site::{Cpu, SETTING, Site, applied, setting},
    times::Times,
};

/// The number of clients.
const CLIENTS: usize = 64;

/// The duration of a measurement.
const LASTING: Duration = Duration::from_secs(10);

/// The time between two looks at the size of etcd's database.
const LOOK_AT_DATABASE: Duration = Duration::from_secs(5);

/// The time from a client's command to its next one while the lag is measured: 1,000 commands a second in all.
const EVERY: Duration = Duration::from_millis(CLIENTS as u64);

/// The rates of a measurement, in a second.
pub(crate) struct Commits {
    /// The commands that were answered.
    pub(crate) rate: f64,
    /// The batches that the writer wrote.
    pub(crate) batches: f64,
    /// The commands that were answered, by model.
    pub(crate) acknowledged: Acknowledged,
    /// The CPU time of each part for a command, in microseconds.
    pub(crate) cpu: Cpu,
}

impl Commits {
    /// Lets clients of these controllers send commands for a while. `leader` is the number of the one that leads.
    pub(crate) async fn measured(site: &Site, leader: usize, hosts: &[usize]) -> anyhow::Result<Self> {
        let clients = clients(site, hosts).await?;
        let before = site.revision(leader).await?;
        let (began, cpu) = (Instant::now(), site.cpu(leader)?);
        let acknowledged = run(clients, None, began + LASTING).await?;
        let (seconds, cpu) =
            (began.elapsed().as_secs_f64(), site.cpu(leader)?.each(cpu, acknowledged.total()));
        let batches = site.revision(leader).await?.0 - before.0;
        let (rate, batches) = (acknowledged.total() as f64 / seconds, batches as f64 / seconds);
        Ok(Self { rate, batches, acknowledged, cpu })
    }
}

/// The distance of followers under load.
pub(crate) struct Lag {
    /// The times that followers need to apply what the leader has answered.
    pub(crate) times: Times,
    /// The commands a second.
    pub(crate) rate: f64,
    /// The largest size of etcd's database, in bytes.
    pub(crate) database: i64,
}

/// Measures how far followers lag, and how large etcd's database becomes, while clients send commands for so long.
pub(crate) async fn stale(site: &Site, leader: usize, lasting: Duration) -> anyhow::Result<Lag> {
    let clients = clients(site, &[leader]).await?;
    let began = Instant::now();
    let loaded = tokio::spawn(run(clients, Some(EVERY), began + lasting));
    let (client, mut times) = (site.client(leader)?, Times::default());
    let model = site.model(&client, "lag").await?;
    let followers = (0..3).filter(|number| *number != leader).map(|number| site.client(number));
    let followers = followers.collect::<anyhow::Result<Vec<_>>>()?;
    let (mut database, mut looked) = (0, began);
    for count in 0.. {
        if began.elapsed() >= lasting {
            break;
        }
        if looked.elapsed() >= LOOK_AT_DATABASE {
            database = database.max(site.etcd()?.database_bytes().await?);
            looked = Instant::now();
        }
        let revision = sent(&client, &model, count).await?;
        let answered = Instant::now();
        let waits = followers.iter().map(|follower| applied(follower, revision, answered));
        for time in try_join_all(waits).await? {
            times.push(time);
        }
    }
    let acknowledged = loaded.await??;
    database = database.max(site.etcd()?.database_bytes().await?);
    let rate = acknowledged.total() as f64 / began.elapsed().as_secs_f64();
    Ok(Lag { times, rate, database })
}

/// Makes the clients, spread over these controllers, each with a model.
async fn clients(site: &Site, hosts: &[usize]) -> anyhow::Result<Vec<(Client, ModelSelector)>> {
    let mut clients = Vec::new();
    for host in hosts.iter().cycle().take(CLIENTS) {
        let client = site.client(*host)?;
        let model = site.model(&client, "load").await?;
        clients.push((client, model));
    }
    Ok(clients)
}

/// Lets clients send commands until a time, and returns those that were answered.
async fn run(
    clients: Vec<(Client, ModelSelector)>,
    every: Option<Duration>,
    until: Instant,
) -> anyhow::Result<Acknowledged> {
    let mut running = JoinSet::new();
    for (client, model) in clients {
        running.spawn(async move {
            let (mut turns, mut count) = (every.map(tokio::time::interval), 0);
            loop {
                if let Some(turns) = &mut turns {
                    turns.tick().await;
                }
                if Instant::now() >= until {
                    break;
                }
                sent(&client, &model, count).await?;
                count += 1;
            }
            anyhow::Ok((model, count))
        });
    }
    let mut acknowledged = Acknowledged::default();
    while let Some(ended) = running.join_next().await {
        let (model, commands) = ended.context("a client panicked")??;
        acknowledged.add(model, commands);
    }
    Ok(acknowledged)
}

/// Sends the command of a model with this number, which writes, and returns its revision.
pub(crate) async fn sent(client: &Client, model: &ModelSelector, count: u64) -> anyhow::Result<Revision> {
    let set = [(SETTING.to_owned(), setting(count))].into();
    let results = client.commands(model, vec![Command::SetModelConfig { set, reset: Vec::new() }]).await?;
    Ok(results.revision)
}
