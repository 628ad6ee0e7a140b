//! `bootstrap`: a controller in the background, and an agent on this machine.

use std::{fs, net::SocketAddr, os::unix::fs::DirBuilderExt as _};

use clap::Args;
use periapt_host_api::AgentName;

use crate::{
    context::{Context, client},
    data::{ClientData, ControllerDir, ControllerEntry, ControllerName, Local, LocalAgent},
    error::{Explain as _, Failure, Result},
    local::{alive, end, start_agent, start_controller},
};

/// Start a controller on this machine, with an agent that runs units
///
/// Both run in the background and keep their data in the client's data directory. No model is made: `periapt
/// add-model` makes one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt bootstrap\n  periapt bootstrap staging --listen 127.0.0.1:17070"
)]
pub(crate) struct Bootstrap {
    /// This client's name for the controller
    #[arg(default_value = "local")]
    name: ControllerName,
    /// Where the controller listens; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Start no agent on this machine
    #[arg(long, conflicts_with = "agent_name")]
    no_agent: bool,
    /// The name of this machine's agent, if not the machine's own
    #[arg(long, value_name = "NAME")]
    agent_name: Option<AgentName>,
    /// Leave everything as it is if something goes wrong
    #[arg(long)]
    keep_broken: bool,
}

impl Bootstrap {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let name = &self.name;
        // The name is taken before anything is started, so that two bootstraps cannot share a directory.
        let known = ClientData::read(&context.data)?;
        if let Some(entry) = known.controllers.get(name) {
            return Err(already_there(name, entry));
        }
        let directory = context.data.controller(name);
        make(&directory)?;
        context.say(format_args!("Creating controller \"{name}\" on this machine"));
        let bootstrapped = self.start(context, &directory).await;
        if bootstrapped.is_err() && !self.keep_broken {
            let removed = fs::remove_dir_all(directory.path());
            removed.explain(|| format!("cannot remove {}", directory.path().display()))?;
        }
        let entry = bootstrapped?;
        context.say(format_args!("Controller at {}", entry.url));
        if let Some(agent) = entry.local.as_ref().and_then(|local| local.agent.as_ref()) {
            context.say(format_args!("Agent \"{}\" is ready", agent.name));
        }
        context.say(format_args!(
            "Bootstrap complete, controller \"{name}\" is now available\n\n\
             Now you can run\n\tperiapt add-model <model-name>\nto create a new model to deploy applications."
        ));
        Ok(())
    }

    /// Starts both, and writes down where they are.
    async fn start(&self, context: &Context, directory: &ControllerDir) -> Result<ControllerEntry> {
        let controller = start_controller(&self.name, directory, self.listen).await?;
        let mut local = Local { controller: controller.process, agent: None };
        let entry = self.complete(context, directory, controller.at, &mut local).await;
        if entry.is_err() && !self.keep_broken {
            end(&local).await?;
        }
        entry
    }

    async fn complete(
        &self,
        context: &Context,
        directory: &ControllerDir,
        url: String,
        local: &mut Local,
    ) -> Result<ControllerEntry> {
        let info = client(&url)?.controller().await?;
        if !self.no_agent {
            let name = match &self.agent_name {
                Some(name) => name.clone(),
                None => this_machine()?,
            };
            let process = start_agent(&name, directory, &url).await?;
            local.agent = Some(LocalAgent { name: name.clone(), process });
            alive(&url, &name).await?;
        }
        let entry = ControllerEntry { url, uuid: info.uuid, current_model: None, local: Some(local.clone()) };
        ClientData::update(&context.data, |known| {
            known.controllers.insert(self.name.clone(), entry.clone());
            known.current_controller = Some(self.name.clone());
            Ok(())
        })?;
        Ok(entry)
    }
}

fn make(directory: &ControllerDir) -> Result<()> {
    let path = directory.path();
    let failed = || format!("cannot make {}", path.display());
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    if let Some(parent) = path.parent() {
        builder.create(parent).explain(failed)?;
    }
    builder.recursive(false).create(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::new(format!(
            "{} is there already, of a controller that this client does not know",
            path.display()
        ))
        .with_hint("if no bootstrap of this name is under way, move it away"),
        _ => Failure::new(format!("{}: {error}", failed())),
    })
}

fn already_there(name: &ControllerName, entry: &ControllerEntry) -> Failure {
    let running = entry.local.as_ref().is_some_and(|local| local.controller.is_running());
    Failure::new(format!("controller \"{name}\" already exists")).with_hint(match running {
        true => format!("`periapt destroy-controller {name}` removes it"),
        false => {
            format!("`periapt controller start {name}` starts it again, `periapt kill-controller {name}` removes it")
        }
    })
}

/// This machine's name, as far as an agent can be called by it.
fn this_machine() -> Result<AgentName> {
    let system = rustix::system::uname();
    agent_name(&system.nodename().to_string_lossy())
}

fn agent_name(host: &str) -> Result<AgentName> {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let text: String = host.chars().filter(allowed).take(64).collect();
    let text = text.trim_start_matches(['-', '_', '.']);
    Ok(AgentName::new(if text.is_empty() { "local" } else { text })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_called_as_its_host_as_far_as_that_is_a_name() {
        assert_eq!(agent_name("node-1.example").unwrap().as_str(), "node-1.example");
        assert_eq!(agent_name("-bücher").unwrap().as_str(), "bcher");
        assert_eq!(agent_name("").unwrap().as_str(), "local");
        assert_eq!(agent_name("...").unwrap().as_str(), "local");
    }
}
