//! The replay of a recorded hook in the sandbox of agents: with its seed, clock, budgets and environment, and each host
//! call answered from its record.

mod compare;
mod difference;

pub use difference::ReplayDifference;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use periapt_hook::{
    HookContext, HookInputs, HookLimits, LeaseState, NotReplayable, RecordedBudgets, ReplayableRun,
    ReplayedCalls,
};
use periapt_host_api::{
    Digest, UnitName,
    budget::BudgetKey,
    commit::EarlyEffect,
    journal::{HookCosts, HookOutcome, JournalRecord},
    logs::LogLevel,
};
use periapt_sandbox::{Budgets, HandlerOutcome, HookReport, HookServices, RunInputs, Seed, engine_version};
use serde::Serialize;

use crate::{Scene, Trial, TrialError, scene::view, stage::Stage};

/// The least wall time of a replay: its host may be slower than the agent's. The recorded run had its own wall time, which
/// is not compared.
const WALL: Duration = Duration::from_secs(600);

/// The reason why a hook was not replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The record does not permit it.
    #[error(transparent)]
    NotReplayable(#[from] NotReplayable),
    /// The record has no seed.
    #[error("its record has no seed")]
    NoSeed,
    /// The archive is another one.
    #[error("the hook ran the charm with the digest {recorded}, and this archive has {given}")]
    OtherCharm {
        /// The recorded digest.
        recorded: Digest,
        /// The digest of the archive.
        given: Digest,
    },
    /// The archive has another component.
    #[error("the hook ran the component with the digest {recorded}, and the charm has {given}")]
    OtherComponent {
        /// The recorded digest.
        recorded: Digest,
        /// The digest of the archive's component.
        given: Digest,
    },
    /// The sandbox cannot run it.
    #[error(transparent)]
    Trial(#[from] TrialError),
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplayResult {
    /// The outcome of the replay.
    pub outcome: HookOutcome,
    /// The costs of the replay.
    pub costs: HookCosts,
    /// The number of recorded calls that the replay made again. They include the beginning of the run and requests for
    /// files.
    pub calls: u64,
    /// The first difference from the record; none if the replay is the same.
    pub difference: Option<ReplayDifference>,
    /// The facts that bound the comparison, in words.
    pub notes: Vec<String>,
    /// The lines that the hook logged or wrote to its standard output and standard error.
    pub log: Vec<ReplayedLine>,
}

/// One line of a replayed hook's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReplayedLine {
    /// The severity.
    pub level: LogLevel,
    /// The logging module.
    pub module: String,
    /// The text.
    pub message: String,
}

/// Checks whether a record permits a replay.
///
/// # Errors
/// [`ReplayError::NotReplayable`], [`ReplayError::NoSeed`]
pub fn check_replayable(record: &JournalRecord) -> Result<(), ReplayError> {
    seed(record)?;
    ReplayableRun::of(record)?;
    Ok(())
}

impl Trial {
    /// Replays a hook of this charm from its record, which must have its calls and its seed. It needs a runtime with time.
    ///
    /// # Errors
    /// [`ReplayError`]. A replay that differs from the record is no error but a result.
    pub async fn replay(&self, unit: &UnitName, record: &JournalRecord) -> Result<ReplayResult, ReplayError> {
        let ReplayableRun { budgets: recorded, calls } = ReplayableRun::of(record)?;
        let seed = seed(record)?;
        let (digest, component) = (self.charm().digest, self.component());
        if digest != record.charm {
            return Err(ReplayError::OtherCharm { recorded: record.charm, given: digest });
        }
        if component != record.component {
            return Err(ReplayError::OtherComponent { recorded: record.component, given: component });
        }
        let scene = Scene::of_unit(unit.clone());
        let stage = Stage::new(&scene, record.started_at, BTreeMap::new()).map_err(TrialError::from)?;
        let stage = Arc::new(stage);
        let context = self.stand_in(&scene, record, seed)?.replaying(calls);
        let services = Arc::clone(&stage) as Arc<dyn HookServices>;
        let inputs = RunInputs { context, seed, budgets: bounded(recorded), storage: Vec::new(), services };
        let report = self.sandbox.run_hook(&self.prepared, inputs).await.map_err(TrialError::from)?;
        let HookReport { outcome, gathered, costs, .. } = report;
        let calls = gathered.replayed.unwrap_or(ReplayedCalls { same: 0, difference: None });
        let ran = compare::ReplayedRun { outcome: outcome_of(outcome), costs, calls };
        let mut notes = Vec::new();
        if !self.meta().storage.is_empty() {
            notes.push("the journal has no files of storage: the replay had none".to_owned());
        }
        let difference = compare::compare(record, &recorded, &ran, engine_version(), &mut notes);
        let mut early = stage.take_early();
        early.extend(gathered.early.into_iter().map(|(_, effect)| effect));
        Ok(ReplayResult {
            outcome: ran.outcome,
            costs: ran.costs,
            calls: ran.calls.same,
            difference,
            notes,
            log: early.into_iter().filter_map(line).collect(),
        })
    }

    /// Returns a context of the recorded event over a model that stands in for the unit's: the record answers the calls.
    fn stand_in(&self, scene: &Scene, record: &JournalRecord, seed: Seed) -> Result<HookContext, TrialError> {
        let view = view::view(scene, &record.event, &self.charm(), &BTreeMap::new(), record.started_at)?;
        let inputs = HookInputs {
            limits: HookLimits::of_hook(&view, &scene.unit),
            view,
            unit: scene.unit.clone(),
            event: record.event.clone(),
            attempt: record.attempt,
            lease: LeaseState::default(),
            context_id: "0".repeat(32),
            ids: seed.ids(),
            api_addresses: Vec::new(),
        };
        Ok(HookContext::new(inputs)?)
    }
}

/// Returns the budgets of a record within those that an application may have: the agent that recorded the run may have been
/// another's.
fn bounded(recorded: RecordedBudgets) -> Budgets {
    let Budgets { memory, fuel, wall, host_calls, tmp_bytes, tmp_files } = Budgets::from(recorded);
    let (cpu, timeout) = (BudgetKey::HookCpuBudget.most(), BudgetKey::ActionTimeout.most());
    Budgets {
        memory: memory.min(BudgetKey::HookMemoryLimit.most()),
        fuel: fuel.min(Budgets::cpu(Duration::from_secs(cpu))),
        wall: wall.clamp(WALL, Duration::from_secs(timeout)),
        host_calls: host_calls.min(BudgetKey::HookCallLimit.most()),
        tmp_bytes: tmp_bytes.min(BudgetKey::HookTmpLimit.most()),
        tmp_files: tmp_files.min(Budgets::default().tmp_files),
    }
}

fn seed(record: &JournalRecord) -> Result<Seed, ReplayError> {
    // A hook that was not run has no seed. Its own error tells more.
    if record.seed.is_empty() {
        ReplayableRun::of(record)?;
    }
    let mut seed = [0; 32];
    hex::decode_to_slice(&record.seed, &mut seed).map_err(|_| ReplayError::NoSeed)?;
    Ok(Seed(seed))
}

fn outcome_of(outcome: HandlerOutcome) -> HookOutcome {
    match outcome {
        HandlerOutcome::Handled => HookOutcome::Handled,
        HandlerOutcome::Unhandled => HookOutcome::Unhandled,
        HandlerOutcome::Failed(error) => HookOutcome::Failed { message: error.to_string() },
    }
}

fn line(effect: EarlyEffect) -> Option<ReplayedLine> {
    match effect {
        EarlyEffect::Log { level, module, message } => Some(ReplayedLine { level, module, message }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_of_a_record_are_within_those_of_applications() {
        let usual = Budgets { wall: WALL, ..Budgets::default() };
        assert_eq!(bounded(RecordedBudgets::from(&Budgets::default())), usual);
        let boundless = RecordedBudgets {
            memory: u64::MAX,
            fuel: u64::MAX,
            wall_ms: u64::MAX,
            host_calls: u64::MAX,
            tmp_bytes: u64::MAX,
            tmp_files: u64::MAX,
        };
        let Budgets { memory, wall, tmp_bytes, tmp_files, .. } = bounded(boundless);
        assert_eq!((memory, tmp_bytes, tmp_files), (1 << 30, 1 << 30, 10_000));
        assert_eq!(wall, Duration::from_secs(24 * 3_600));
    }
}
