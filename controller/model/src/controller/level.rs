//! The level of what is stored, and its raise.

use periapt_host_api::{
    ErrorCode, LEVEL, Level, Refusal,
    agent::RunnerCommand,
    budget::BudgetSettings,
    command::ControllerCommand,
    commit::UnitCommit,
    egress::WORKLOAD_EGRESS,
    record::{HookStep, Operation},
    settings::{ModelSettings, WORKLOAD_CRASH},
};

use crate::{
    entity::EntityKey,
    input::{Input, UploadedResource, WorkerCommand},
    root::{Root, changes::Changes},
};

impl Root {
    /// Returns the level of what is stored.
    pub fn level(&self) -> Level {
        self.controller().map(|controller| controller.level).unwrap_or_default()
    }
}

/// Raises the level, but not above what this program knows. Changes nothing if it is as high already.
pub(crate) fn raise(root: &Root, level: Level) -> Changes {
    let mut changes = Changes::default();
    let Some(controller) = root.controller().filter(|controller| controller.level < level.min(LEVEL)) else {
        return changes;
    };
    let mut controller = controller.clone();
    controller.level = level.min(LEVEL);
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    changes
}

/// Refuses a request that programs of the stored level do not know: controllers that have one could not carry it out,
/// and would drop what it stores.
///
/// # Errors
/// [`ErrorCode::NotSupported`]
pub fn check(root: &Root, input: &Input) -> Result<(), Refusal> {
    require(root, level_of(input))
}

/// Refuses limits on workloads that programs of the stored level do not know.
///
/// # Errors
/// [`ErrorCode::NotSupported`]
pub(crate) fn check_limits(root: &Root, budgets: &BudgetSettings) -> Result<(), Refusal> {
    match budgets.0.keys().any(|key| key.is_of_workloads()) {
        true => require(root, OF_WORKLOADS),
        false => Ok(()),
    }
}

/// Refuses settings of models that programs of the stored level do not know.
///
/// # Errors
/// [`ErrorCode::NotSupported`]
pub(crate) fn check_settings(root: &Root, settings: &ModelSettings) -> Result<(), Refusal> {
    match settings.has_quota() {
        true => require(root, OF_WORKLOADS),
        false => check_limits(root, &settings.budgets),
    }
}

/// The first level whose programs know workloads, limits on them and quotas of them.
pub(crate) const OF_WORKLOADS: Level = Level(2);

fn require(root: &Root, needed: Level) -> Result<(), Refusal> {
    let stored = root.level();
    if needed <= stored {
        return Ok(());
    }
    let text = format!(
        "this needs level {needed} of what controllers store, and it is {stored}: it rises once the program of each \
         controller is upgraded; `periapt show-controller` shows which is not"
    );
    Err(Refusal::new(ErrorCode::NotSupported, text))
}

/// Returns the first level whose programs know a request.
fn level_of(input: &Input) -> Level {
    match input {
        Input::Model(_, command)
            if command.changes_key(WORKLOAD_EGRESS) || command.changes_key(WORKLOAD_CRASH) =>
        {
            Level(2)
        }
        Input::Controller(command) if command.changes_key(WORKLOAD_EGRESS) => Level(2),
        // They would keep the charm without its containers, and never read it again.
        Input::UploadCharm(charm) if !charm.meta.containers.is_empty() => OF_WORKLOADS,
        Input::Runner(_, RunnerCommand::Commit(commit)) if tells_of_workloads(commit) => OF_WORKLOADS,
        Input::Backup { .. }
        | Input::UploadResource(UploadedResource { image: Some(_), .. })
        | Input::Runner(_, RunnerCommand::Container { .. } | RunnerCommand::Workloads { .. })
        | Input::Controller(
            ControllerCommand::RemoveController { .. }
            | ControllerCommand::SetProgram(_)
            | ControllerCommand::Migrate { .. }
            | ControllerCommand::AbortMigration { .. }
            | ControllerCommand::ForgetMigration { .. }
            | ControllerCommand::BeginImport { .. }
            | ControllerCommand::ImportPage(_)
            | ControllerCommand::HoldImport { .. }
            | ControllerCommand::ActivateImport { .. }
            | ControllerCommand::AbortImport { .. },
        )
        | Input::Worker(
            WorkerCommand::AdmitController { .. }
            | WorkerCommand::NoteController { .. }
            | WorkerCommand::ReleaseProgram(_)
            | WorkerCommand::HandOverModel(..)
            | WorkerCommand::NoteMoved(..)
            | WorkerCommand::NoteMigrationFailed { .. }
            | WorkerCommand::NoteAbortTold(..)
            | WorkerCommand::EndMigration(_),
        ) => Level(2),
        _ => Level::FIRST,
    }
}

/// Returns true if a commit keeps something about workloads of its unit, which have come with the charm's containers.
/// Each commit is looked at: the cost is the same for all.
fn tells_of_workloads(commit: &UnitCommit) -> bool {
    let UnitCommit { record, journal, .. } = commit;
    let begun = record.begun.as_ref();
    let (event, is_cut_short) = match &record.operation {
        Operation::Continue => (None, false),
        Operation::Hook { event, step } => {
            (Some(event), matches!(step, HookStep::Failed(failure) if failure.cut_short))
        }
        Operation::DeployFailed { failure, interrupted, .. } => {
            let interrupted = interrupted.as_ref();
            let cut_short = interrupted.is_some_and(|interrupted| interrupted.failure.cut_short);
            (interrupted.map(|interrupted| &interrupted.event), failure.cut_short || cut_short)
        }
    };
    let of_journal = journal.as_ref().map(|journal| &journal.event);
    let events = [event, begun.map(|begun| &begun.event), of_journal];
    is_cut_short
        || !record.workloads.is_empty()
        || begun.is_some_and(|begun| begun.beside_workloads)
        || events.into_iter().flatten().any(|event| event.container().is_some())
}
