//! The commands: a module each, or one for a few that belong together. Each parses, calls, and prints.

pub(crate) mod action;
pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod bootstrap;
pub(crate) mod bundle;
pub(crate) mod cancel_event;
pub(crate) mod config;
pub(crate) mod controller;
pub(crate) mod controllers;
pub(crate) mod debug_log;
pub(crate) mod deploy;
pub(crate) mod destroy_controller;
pub(crate) mod expose;
pub(crate) mod hooks;
pub(crate) mod integrate;
pub(crate) mod machines;
pub(crate) mod model;
pub(crate) mod model_config;
pub(crate) mod offers;
pub(crate) mod pack;
pub(crate) mod refresh;
pub(crate) mod resolved;
pub(crate) mod resources;
pub(crate) mod secrets;
pub(crate) mod show;
pub(crate) mod show_status_log;
pub(crate) mod spaces;
pub(crate) mod status;
pub(crate) mod storage;
pub(crate) mod switch;
pub(crate) mod try_hook;
pub(crate) mod units;
pub(crate) mod usage;
pub(crate) mod version;
pub(crate) mod wait_for;

mod charm;
mod removal;
mod settings;

use crate::{args::Command, context::Context, error::Result};

/// Does what was asked.
pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Bootstrap(command) => command.run(context).await,
        Command::Controller(command) => command.run(context).await,
        Command::Controllers(command) => command.run(context).await,
        Command::DestroyController(command) => command.run(context).await,
        Command::KillController(command) => command.run(context).await,
        Command::Agent(command) => command.run().await,
        Command::Agents(command) => command.run(context).await,
        Command::AddModel(command) => command.run(context).await,
        Command::Models(command) => command.run(context).await,
        Command::Switch(command) => command.run(context).await,
        Command::DestroyModel(command) => command.run(context).await,
        Command::ModelConfig(command) => command.run(context).await,
        Command::Deploy(command) => command.run(context).await,
        Command::ExportBundle(command) => command.run(context).await,
        Command::Refresh(command) => command.run(context).await,
        Command::Config(command) => command.run(context).await,
        Command::Trust(command) => command.run(context).await,
        Command::AddUnit(command) => command.run(context).await,
        Command::RemoveUnit(command) => command.run(context).await,
        Command::RemoveApplication(command) => command.run(context).await,
        Command::Expose(command) => command.run(context).await,
        Command::Unexpose(command) => command.run(context).await,
        Command::Spaces(command) => command.run(context).await,
        Command::Subnets(command) => command.run(context).await,
        Command::AddSpace(command) => command.run(context).await,
        Command::MoveToSpace(command) => command.run(context).await,
        Command::RemoveSpace(command) => command.run(context).await,
        Command::Bind(command) => command.run(context).await,
        Command::Integrate(command) => command.run(context).await,
        Command::RemoveRelation(command) => command.run(context).await,
        Command::SuspendRelation(command) => command.run(context).await,
        Command::ResumeRelation(command) => command.run(context).await,
        Command::Offer(command) => command.run(context).await,
        Command::Offers(command) => command.run(context).await,
        Command::ShowOffer(command) => command.run(context).await,
        Command::FindOffers(command) => command.run(context).await,
        Command::RemoveOffer(command) => command.run(context).await,
        Command::Consume(command) => command.run(context).await,
        Command::RemoveSaas(command) => command.run(context).await,
        Command::AddSecret(command) => command.run(context).await,
        Command::UpdateSecret(command) => command.run(context).await,
        Command::GrantSecret(command) => command.run(context).await,
        Command::RevokeSecret(command) => command.run(context).await,
        Command::RemoveSecret(command) => command.run(context).await,
        Command::Secrets(command) => command.run(context).await,
        Command::ShowSecret(command) => command.run(context).await,
        Command::Machines(command) => command.run(context).await,
        Command::RemoveMachine(command) => command.run(context).await,
        Command::AttachResource(command) => command.run(context).await,
        Command::Resources(command) => command.run(context).await,
        Command::Actions(command) => command.run(context).await,
        Command::ShowAction(command) => command.run(context).await,
        Command::Run(command) => command.run(context).await,
        Command::Exec(command) => command.run(context).await,
        Command::Operations(command) => command.run(context).await,
        Command::ShowOperation(command) => command.run(context).await,
        Command::ShowTask(command) => command.run(context).await,
        Command::CancelTask(command) => command.run(context).await,
        Command::Storage(command) => command.run(context).await,
        Command::ShowStorage(command) => command.run(context).await,
        Command::AddStorage(command) => command.run(context).await,
        Command::AttachStorage(command) => command.run(context).await,
        Command::DetachStorage(command) => command.run(context).await,
        Command::RemoveStorage(command) => command.run(context).await,
        Command::Status(command) => command.run(context).await,
        Command::ShowUnit(command) => command.run(context).await,
        Command::ShowApplication(command) => command.run(context).await,
        Command::ShowStatusLog(command) => command.run(context).await,
        Command::Hooks(command) => command.run(context).await,
        Command::Usage(command) => command.run(context).await,
        Command::DebugLog(command) => command.run(context).await,
        Command::WaitFor(command) => command.run(context).await,
        Command::Resolved(command) => command.run(context).await,
        Command::CancelEvent(command) => command.run(context).await,
        Command::Pack(command) => command.run(context),
        Command::TryHook(command) => command.run(context).await,
        Command::HelpHookCommands(command) => command.run(context),
        Command::HelpActionCommands(command) => command.run(context),
        Command::Version(command) => command.run(context),
    }
}
