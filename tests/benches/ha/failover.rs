//! The end of the controller that leads, and the time until another one answers a command.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use periapt_host_api::api::ModelSelector;
use periapt_tests::signal;

use crate::{
    commits::sent,
    site::{Site, gone},
};

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is killed (SIGKILL).
    Kill,
    /// It is told to stop (SIGTERM), and gives up its leadership.
    Stop,
}

/// One measurement.
pub(crate) struct Ended {
    /// The number of the controller that ended.
    pub(crate) host: usize,
    /// The time from the end to the first answer to a command that was sent after it.
    pub(crate) gap: Duration,
    /// The model of the commands, and their number.
    pub(crate) acknowledged: (ModelSelector, u64),
}

/// Ends the controller that leads, and waits for the answer to a command through another one.
pub(crate) async fn measured(site: &Site, ending: Ending) -> anyhow::Result<Ended> {
    let host = site.leader().await?;
    let other = (0..3).find(|number| *number != host).context("another controller")?;
    let client = site.client(other)?;
    let model = site.model(&client, "gap").await?;
    // The connection is made before the time begins.
    sent(&client, &model, 0).await?;
    let process = site.host(host)?.controller_process("local")?;
    let began = Instant::now();
    signal(process, if ending == Ending::Kill { "KILL" } else { "TERM" })?;
    sent(&client, &model, 1).await?;
    let gap = began.elapsed();
    gone(process).await?;
    Ok(Ended { host, gap, acknowledged: (model, 2) })
}
