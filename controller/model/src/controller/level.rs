//! The level of what is stored, and its raise.

use periapt_host_api::{
    ErrorCode, LEVEL, Level, Refusal,
    agent::RunnerCommand,
    budget::BudgetSettings,
    command::ControllerCommand,
    egress::WORKLOAD_EGRESS,
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

/// The first level whose programs know limits on workloads and quotas of them.
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
