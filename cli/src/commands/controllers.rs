//! Controllers, and the agents that serve them.

mod agent;
mod agent_token;
mod agents;
mod bootstrap;
mod controller;
mod controller_token;
mod create_backup;
mod destroy;
mod enable_ha;
mod join;
mod list;
mod remove_agent;
mod show;
mod unregister;
mod upgrade_controller;

use super::{Verb, verbs};

verbs! {
    /// Controllers, and the agents that serve them.
    Controllers {
        bootstrap::Bootstrap,
        /// Run a controller, or start one again that was bootstrapped here
        #[command(subcommand)]
        controller::Controller,
        controller_token::ControllerToken,
        enable_ha::EnableHa,
        upgrade_controller::UpgradeController,
        list::Controllers,
        create_backup::CreateBackup,
        show::ShowController,
        destroy::DestroyController,
        destroy::KillController,
        unregister::Unregister,
        /// Run an agent
        #[command(subcommand)]
        agent::Agent,
        agents::Agents,
        agent_token::AgentToken,
        remove_agent::RemoveAgent,
    }
}
