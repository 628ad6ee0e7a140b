//! The operator, which repeats each step until the controller acknowledges it or the model shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use periapt_client::{Client, ClientError, Identity, Options};
use periapt_host_api::{
    ErrorCode, UnitName,
    api::ModelSelector,
    command::{Command, ControllerCommand, ResolveMode},
};
use periapt_tests::HookHistory;

use crate::{
    observed::Observed,
    steps::{Editions, LASTING, Plan, Step, deploy, selector},
};

/// The timeout of each wait.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The interval between checks.
const LOOK: Duration = Duration::from_millis(30);
/// The number of consecutive checks without due work and commits after which the model counts as settled.
const CALM: u32 = 12;
/// An application without units: a unit that is related to it has only its own bag.
const DESK: &str = "desk";
/// A second application without units, which keeps the second charm in use and its revision stable.
const SPARE: &str = "spare";
/// The count that a miscounting unit sets: more hooks than any of these units runs.
const WRONG: u64 = 100_000;
/// The hook that the script can fail.
const FAILS: &str = "config-changed";

/// An operator of one model.
#[derive(Debug)]
pub(crate) struct Operator {
    client: Client,
    model: ModelSelector,
    charms: Editions,
    history: HookHistory,
    /// The units whose journal may still grow.
    followed: BTreeSet<UnitName>,
    progress: Arc<AtomicU64>,
}

impl Operator {
    /// Makes a model with the applications that all steps rely on.
    pub(crate) async fn prepare(url: &str, archives: [Vec<u8>; 2]) -> anyhow::Result<Self> {
        let client = Client::new(Options::new(url, Identity::Local))?;
        let model: ModelSelector = "storm".parse()?;
        client.controller_command(ControllerCommand::add_model("storm".parse()?)).await?;
        let [first, second] = archives;
        let first = client.upload_charm(first.into()).await?.digest;
        let second = client.upload_charm(second.into()).await?.digest;
        let charms = Editions { first, second };
        // Work that a clock makes due differs from run to run.
        let quiet = [("update-status-hook-interval".to_owned(), "0".to_owned())].into();
        let mut commands = vec![
            Command::SetModelConfig { set: quiet, reset: Vec::new() },
            deploy(first, DESK, 0, [])?,
            deploy(second, SPARE, 0, [])?,
        ];
        for (name, units) in LASTING {
            commands.push(deploy(first, name, units, [("ledger", "true".to_owned())])?);
            let (first, second) = (selector(&format!("{name}:tally"))?, selector(&format!("{DESK}:desk"))?);
            commands.push(Command::Integrate { first, second, via: Vec::new() });
        }
        for command in commands {
            client.command(&model, command).await?;
        }
        let history = HookHistory::default();
        Ok(Self { client, model, charms, history, followed: BTreeSet::new(), progress: Arc::default() })
    }

    /// Returns the counter of the hooks that this operator has seen in the journal.
    pub(crate) fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.progress)
    }

    /// Returns the number of hooks that the operator has seen.
    pub(crate) fn hooks(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// Performs a step once.
    pub(crate) async fn perform(&mut self, step: &Step) -> anyhow::Result<()> {
        if let Step::Mend(name, _, ResolveMode::NoRetry) = step {
            self.answer(name, ResolveMode::NoRetry).await?;
        }
        self.submit(step).await?;
        if let Step::Mend(name, _, ResolveMode::Retry) = step {
            self.answer(name, ResolveMode::Retry).await?;
        }
        Ok(())
    }

    /// Resolves the failed hooks of an application's units, once each. With `NoRetry` it waits for hooks that have
    /// yet to fail; with `Retry` a hook may meanwhile succeed by itself.
    async fn answer(&mut self, name: &str, mode: ResolveMode) -> anyhow::Result<()> {
        let began = Instant::now();
        let (mut asked, mut taken) = (BTreeSet::new(), BTreeSet::new());
        loop {
            let observed = self.observe().await?;
            let mut open = Vec::new();
            for (unit, failed) in observed.failures_of(name) {
                let passed_over = mode == ResolveMode::NoRetry;
                let due = failed.is_some_and(|hook| !passed_over || hook == FAILS);
                let awaited = passed_over && (!asked.contains(&unit.name) || unit.resolved.is_some());
                if !(awaited || due && !taken.contains(&unit.name)) {
                    continue;
                }
                open.push(unit.name.clone());
                if due && unit.resolved.is_none() && !taken.contains(&unit.name) {
                    asked.insert(unit.name.clone());
                    let resolve = Command::Resolve { unit: unit.name.clone(), mode };
                    match self.client.command(&self.model, resolve).await {
                        Ok(_) => drop(taken.insert(unit.name.clone())),
                        Err(error) if may_be_repeated(&error) => {}
                        Err(error) => bail!("resolving {}: {error}", unit.name),
                    }
                }
            }
            if open.is_empty() {
                return Ok(());
            }
            ensure!(began.elapsed() < TIMEOUT, "{open:?} are not resolved after {TIMEOUT:?}");
            self.follow().await?;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Submits a step's command once.
    async fn submit(&mut self, step: &Step) -> anyhow::Result<()> {
        let began = Instant::now();
        let command = step.command(self.charms)?;
        loop {
            match self.client.command(&self.model, command.clone()).await {
                Ok(_) => break,
                Err(error) if may_be_repeated(&error) => {
                    // This is the only operator: an effect that the model shows is its own.
                    if self.observe().await?.shows(step, self.charms) {
                        break;
                    }
                    ensure!(began.elapsed() < TIMEOUT, "{step:?} is not done after {TIMEOUT:?}: {error}");
                    self.follow().await?;
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => bail!("{step:?}: {error}"),
            }
        }
        self.follow().await
    }

    /// Checks that the effects of all acknowledged commands are there.
    pub(crate) async fn verify(&self, plan: &Plan) -> anyhow::Result<()> {
        let wrong = self.observe().await?.contradictions(plan, self.charms);
        ensure!(wrong.is_empty(), "not what was acknowledged: {wrong:#?}");
        Ok(())
    }

    /// Waits until the model settles, and returns it.
    pub(crate) async fn settled(&mut self, plan: &Plan) -> anyhow::Result<Observed> {
        let began = Instant::now();
        let (mut calm, mut commits) = (0, BTreeMap::new());
        loop {
            self.follow().await?;
            let observed = self.observe().await?;
            let pending = observed.pending(plan);
            calm = if pending.is_empty() && observed.commits() == commits { calm + 1 } else { 0 };
            commits = observed.commits();
            if calm == CALM {
                return Ok(observed);
            }
            ensure!(began.elapsed() < TIMEOUT, "the model does not come to rest: {pending:#?}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes an application's units count wrongly, and waits until one of them has.
    pub(crate) async fn miscount(&mut self, name: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        let wrong = format!("{FAILS}: set hooks={WRONG}");
        let current = self.observe().await?.script_of(name).context("no script")?;
        let set = BTreeMap::from([("script".to_owned(), format!("{current}\n{wrong}"))]);
        let command = Command::SetConfig { application: name.parse()?, set, reset: Vec::new() };
        self.client.command(&self.model, command).await?;
        while !self.observe().await?.counts().any(|hooks| hooks >= WRONG) {
            ensure!(began.elapsed() < TIMEOUT, "nobody counts wrongly after {TIMEOUT:?}");
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Returns the collected journal.
    pub(crate) fn history(&self) -> &HookHistory {
        &self.history
    }

    /// Collects new hooks of the journal before the controller drops them.
    async fn follow(&mut self) -> anyhow::Result<()> {
        let status = self.ask(async || self.client.status(&self.model).await).await?;
        let mut there = BTreeSet::new();
        for (name, _) in LASTING {
            for unit in
                status.applications.get(name).into_iter().flat_map(|application| application.units.keys())
            {
                there.insert(unit.parse::<UnitName>()?);
            }
        }
        // Reads the units that have gone since once more.
        let units: BTreeSet<_> = self.followed.union(&there).cloned().collect();
        for unit in &units {
            // A unit's journal is removed with it.
            let journal =
                self.ask(async || present(self.client.journal(&self.model, Some(unit)).await)).await?;
            let Some(journal) = journal else { continue };
            let new =
                self.history.enter(unit, journal.entries.into_iter().map(|entry| entry.record).collect())?;
            self.progress.fetch_add(new, Ordering::AcqRel);
        }
        self.followed = there;
        Ok(())
    }

    /// Reads the whole model. Entities that disappear meanwhile are left out.
    async fn observe(&self) -> anyhow::Result<Observed> {
        let status = self.ask(async || self.client.status(&self.model).await).await?;
        let (mut applications, mut units) = (BTreeMap::new(), BTreeMap::new());
        for (name, application) in &status.applications {
            let name = name.parse()?;
            if let Some(details) =
                self.ask(async || present(self.client.application(&self.model, &name).await)).await?
            {
                applications.insert(name, details);
            }
            for unit in application.units.keys() {
                let unit = unit.parse()?;
                if let Some(details) =
                    self.ask(async || present(self.client.unit(&self.model, &unit).await)).await?
                {
                    units.insert(unit, details);
                }
            }
        }
        Ok(Observed { status, applications, units })
    }

    /// Repeats a request until the controller answers.
    async fn ask<T>(&self, question: impl AsyncFn() -> Result<T, ClientError>) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            match question().await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_temporary() && began.elapsed() < TIMEOUT => {
                    tokio::time::sleep(LOOK).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Turns a refusal with `not-found` into none.
fn present<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(None),
        answer => answer.map(Some),
    }
}

/// Returns true if the controller was away, has already carried the command out, or has not finished earlier work.
fn may_be_repeated(error: &ClientError) -> bool {
    use ErrorCode::{AlreadyExists, Conflict, NotAlive, NotFound};
    let waits = |code| matches!(code, AlreadyExists | Conflict | NotAlive | NotFound);
    error.is_temporary() || error.refusal().is_some_and(|refusal| waits(refusal.code))
}
