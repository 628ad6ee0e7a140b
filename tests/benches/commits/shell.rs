//! The baseline of a hook: the same work as a shell script, with a process for each hook tool.
//!
//! The script's effects are committed in the same way.

use std::process::{Command, Stdio};

use anyhow::ensure;
use periapt_host_api::{Timestamp, journal::HookCosts};
use tokio::runtime::Runtime;

use crate::{model::Model, processes::Processes};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charms/bench/hook.sh");

pub(crate) struct Shell {
    model: Model,
    processes: Processes,
    ran: u32,
}

impl Shell {
    pub(crate) fn new(model: Model) -> anyhow::Result<Self> {
        Ok(Self { model, processes: Processes::new(["relation-get", "relation-set"])?, ran: 0 })
    }

    /// Runs one hook and commits it.
    pub(crate) fn hook(&mut self, runtime: &Runtime) -> anyhow::Result<()> {
        let started_at = Timestamp::now();
        let context = self.model.context()?;
        let mut script = Command::new("/bin/sh");
        script.arg(SCRIPT).env_clear().envs(context.environment()).stdin(Stdio::null());
        let context = self.processes.run(context, &mut script)?;
        let commit = self.model.commit_hook(context.finish(), HookCosts::default(), started_at);
        runtime.block_on(commit)?;
        self.ran += 1;
        ensure!(self.model.counted() == self.ran, "each hook sees the commit of the one before");
        Ok(())
    }
}
