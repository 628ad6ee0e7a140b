//! Commands of concurrent clients, each with its own connection and model.

use std::{
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_client::Client;
use periapt_host_api::{Revision, api::ModelSelector, command::Command};
use tokio::task::JoinSet;

use crate::{
    site::{Site, applied},
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
}

impl Commits {
    /// Lets clients of these controllers send commands for a while.
    pub(crate) async fn measured(site: &Site, hosts: &[usize]) -> anyhow::Result<Self> {
        let clients = clients(site, hosts).await?;
        let first = *hosts.first().context("a controller")?;
        let before = site.revision(first).await?;
        let (began, done) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
        run(clients, None, began + LASTING, &done).await?;
        let seconds = began.elapsed().as_secs_f64();
        let batches = site.revision(first).await?.0 - before.0;
        Ok(Self { rate: done.load(Ordering::SeqCst) as f64 / seconds, batches: batches as f64 / seconds })
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
    let (began, done) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let (load, counted) = (began + lasting, Arc::clone(&done));
    let loaded = tokio::spawn(async move { run(clients, Some(EVERY), load, &counted).await });
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
        for follower in &followers {
            times.push(applied(follower, revision).await?);
        }
    }
    loaded.await??;
    database = database.max(site.etcd()?.database_bytes().await?);
    let rate = done.load(Ordering::SeqCst) as f64 / began.elapsed().as_secs_f64();
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

async fn run(
    clients: Vec<(Client, ModelSelector)>,
    every: Option<Duration>,
    until: Instant,
    done: &Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for (client, model) in clients {
        let done = Arc::clone(done);
        running.spawn(async move {
            let mut turns = every.map(tokio::time::interval);
            for count in 0.. {
                if let Some(turns) = &mut turns {
                    turns.tick().await;
                }
                if Instant::now() >= until {
                    break;
                }
                sent(&client, &model, count).await?;
                done.fetch_add(1, Ordering::SeqCst);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.context("a client panicked")??;
    }
    Ok(())
}

/// Sends one command, which writes, and returns its revision.
pub(crate) async fn sent(client: &Client, model: &ModelSelector, count: u64) -> anyhow::Result<Revision> {
    let set = [("logging-config".to_owned(), format!("<root>=INFO;count={count}"))].into();
    let results = client.commands(model, vec![Command::SetModelConfig { set, reset: Vec::new() }]).await?;
    Ok(results.revision)
}
