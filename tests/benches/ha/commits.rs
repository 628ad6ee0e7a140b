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

/// The pause of each client between two commands while the lag is measured: some 1,000 commands a second in all.
const PAUSE: Duration = Duration::from_millis(50);

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
        run(clients, Duration::ZERO, began + LASTING, &done).await?;
        let seconds = began.elapsed().as_secs_f64();
        let batches = site.revision(first).await?.0 - before.0;
        Ok(Self { rate: done.load(Ordering::SeqCst) as f64 / seconds, batches: batches as f64 / seconds })
    }
}

/// Measures how long followers need to apply what the leader has answered, under load; returns the rate of commands, too.
pub(crate) async fn stale(site: &Site, leader: usize) -> anyhow::Result<(Times, f64)> {
    let clients = clients(site, &[leader]).await?;
    let (began, done) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let (load, counted) = (began + LASTING, Arc::clone(&done));
    let loaded = tokio::spawn(async move { run(clients, PAUSE, load, &counted).await });
    let (client, mut times) = (site.client(leader)?, Times::default());
    let model = site.model(&client, "lag").await?;
    let followers = (0..3).filter(|number| *number != leader).map(|number| site.client(number));
    let followers = followers.collect::<anyhow::Result<Vec<_>>>()?;
    for count in 0.. {
        if began.elapsed() >= LASTING {
            break;
        }
        let revision = sent(&client, &model, count).await?;
        for follower in &followers {
            times.push(applied(follower, revision).await?);
        }
    }
    loaded.await??;
    Ok((times, done.load(Ordering::SeqCst) as f64 / LASTING.as_secs_f64()))
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
    pause: Duration,
    until: Instant,
    done: &Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for (client, model) in clients {
        let done = Arc::clone(done);
        running.spawn(async move {
            for count in 0.. {
                if Instant::now() >= until {
                    break;
                }
                sent(&client, &model, count).await?;
                done.fetch_add(1, Ordering::SeqCst);
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
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
