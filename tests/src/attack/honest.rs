//! The honest caller.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_client::Client;
use periapt_host_api::{api::ModelSelector, command::Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::target::AttackedController;

/// A user who writes and reads, one call after the other, over one connection.
pub(super) struct HonestUser {
    calling: JoinHandle<anyhow::Result<Vec<Duration>>>,
    enough: CancellationToken,
}

impl HonestUser {
    /// Begins the calls, of which there will be at least so many.
    pub(super) fn begin(target: &AttackedController, calls: usize) -> anyhow::Result<Self> {
        let client = target.client(&target.honest)?;
        let model = ModelSelector::Uuid(target.honest_model);
        let enough = CancellationToken::new();
        let calling = tokio::spawn(call(client, model, calls, enough.clone()));
        Ok(Self { calling, enough })
    }

    /// Ends the calls. Returns the time of each, sorted.
    pub(super) async fn end(self) -> anyhow::Result<Vec<Duration>> {
        self.enough.cancel();
        self.calling.await.context("the honest caller")?
    }
}

async fn call(
    client: Client,
    model: ModelSelector,
    calls: usize,
    enough: CancellationToken,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    while times.len() < calls || !enough.is_cancelled() {
        let began = Instant::now();
        if times.len() % 2 == 0 {
            let minutes = format!("{}m", times.len() % 50 + 1);
            let set = BTreeMap::from([("update-status-hook-interval".to_owned(), minutes)]);
            client.command(&model, Command::SetModelConfig { set, reset: Vec::new() }).await?;
        } else {
            client.status(&model).await?;
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}
