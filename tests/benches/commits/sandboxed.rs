//! The measured side: the hook as a component in the sandbox, and its commit.

use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use periapt_archive::{Archive, COMPONENT};
use periapt_hook::{CallTime, LeaseState};
use periapt_host_api::{Timestamp, commit::EarlyEffect, journal::JournalRecord};
use periapt_sandbox::{
    BoxFuture, Budgets, HandlerOutcome, HookServices, Options, Prepared, RunInputs, Sandbox, Seed,
};

use crate::model::{self, Model};

pub(crate) struct Sandboxed {
    model: Model,
    sandbox: Sandbox,
    prepared: Prepared,
    ran: u32,
    journal: Option<JournalRecord>,
}

/// The services of a hook that uses none of them.
struct Nothing;

impl HookServices for Nothing {
    fn now(&self) -> CallTime {
        model::now()
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        Box::pin(async { LeaseState::default() })
    }

    fn fetch_secret(
        &self,
        key: periapt_host_api::secret::SecretKey,
    ) -> BoxFuture<'_, Result<periapt_host_api::secret::SecretData, periapt_hook::CallError>> {
        Box::pin(async move {
            Err(periapt_hook::CallError::NotFound(format!("secret {:?} not found", key.id.to_string())))
        })
    }

    fn early(&self, _items: Vec<(Timestamp, EarlyEffect)>) {}
}

impl Sandboxed {
    pub(crate) fn new(model: Model) -> anyhow::Result<Self> {
        let place = tempfile::tempdir()?;
        let archive = std::fs::read(periapt_tests::packed("bench", place.path())?)?;
        let archive = Archive::read(&archive)?;
        let sandbox = Sandbox::new(Options::default())?;
        let component = archive.file(COMPONENT).context("the archive has no component")?;
        let prepared = sandbox.prepare(&sandbox.compile_in_process(component)?, None)?;
        Ok(Self { model, sandbox, prepared, ran: 0, journal: None })
    }

    /// Runs one hook and commits it.
    pub(crate) async fn hook(&mut self) -> anyhow::Result<()> {
        let context = self.model.context()?;
        let budgets = Budgets::default();
        let inputs = RunInputs {
            context,
            seed: Seed([7; 32]),
            budgets,
            storage: Vec::new(),
            services: Arc::new(Nothing),
        };
        let report = self.sandbox.run_hook(&self.prepared, inputs).await?;
        if report.outcome != HandlerOutcome::Handled {
            bail!("the hook was not handled: {:?}", report.outcome);
        }
        let journal = self.model.commit_hook(report.gathered, report.costs, report.started_at).await?;
        self.journal = Some(journal);
        self.ran += 1;
        ensure!(self.model.counted() == self.ran, "each hook sees the commit of the one before");
        Ok(())
    }

    /// Returns the last hook's journal record.
    pub(crate) fn journal(&self) -> anyhow::Result<JournalRecord> {
        self.journal.clone().context("no hook has run")
    }
}
