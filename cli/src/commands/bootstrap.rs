//! `bootstrap`: a controller in the background, and an agent on this machine.

use std::{fs, net::SocketAddr, os::unix::fs::DirBuilderExt as _};

use clap::Args;
use periapt_host_api::{
    AgentName, ModelName,
    command::ControllerCommand,
    settings::{ModelSettings, SettingKey},
};

use super::{clouds::HERE, settings};
use crate::{
    context::{Context, client},
    data::{
        ClientData, ControllerDir, ControllerEntry, ControllerName, ControllerNameError, Local, LocalAgent,
    },
    error::{Explain as _, Failure, Result, with_source},
    local::{alive, end, start_agent, start_controller},
};

/// A controller's name where nobody says one.
const DEFAULT_NAME: &str = "local";

/// Start a controller on this machine, with an agent that runs units
///
/// Both run in the background and keep their data in the client's data directory. No model is made: `periapt
/// add-model` makes one. Where two names are given, the first is the cloud, as for Juju: localhost, the only one that
/// a controller can be started in.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt bootstrap\n  periapt bootstrap staging --listen 127.0.0.1:17070\n  periapt bootstrap localhost staging --no-switch"
)]
pub(crate) struct Bootstrap {
    /// This client's name for the controller, local unless said; before it may stand the cloud
    #[arg(value_name = "[CLOUD] NAME", num_args = 0..=2)]
    names: Vec<String>,
    /// Stay with the controller that is the current one now
    #[arg(long)]
    no_switch: bool,
    /// Make a model of this name, too, and select it
    #[arg(long, value_name = "NAME")]
    add_model: Option<ModelName>,
    /// A setting KEY=VALUE of all its models, or a YAML file of settings, as model-defaults sets them; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    model_default: Vec<String>,
    /// Taken for Juju's sake: there are no checks to pass over
    #[arg(long, hide = true)]
    force: bool,
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
        let name = &self.name()?;
        let defaults = settings::of_effect(context, settings::from_options(&self.model_default, None)?);
        // What would be refused is told before there is a controller without it.
        let mut checked = ModelSettings::default();
        for (key, text) in &defaults {
            let key: SettingKey = key.parse().map_err(with_source)?;
            checked.set(key, Some(text)).map_err(with_source)?;
        }
        // The name is taken before anything is started, so that two bootstraps cannot share a directory.
        let known = ClientData::read(&context.data)?;
        if let Some(entry) = known.controllers.get(name) {
            return Err(already_there(name, entry));
        }
        let directory = context.data.controller(name);
        make(&directory)?;
        context.say(format_args!("Creating controller \"{name}\" on this machine"));
        let entry = match self.start(context, name, &directory).await {
            Ok(entry) => entry,
            Err(failure) if self.keep_broken => return Err(failure),
            Err(failure) => {
                let removed = fs::remove_dir_all(directory.path());
                let removed = removed.explain(|| format!("cannot remove {}", directory.path().display()));
                return Err(failure.and_undoing(removed));
            }
        };
        if !defaults.is_empty() {
            let command = ControllerCommand::SetModelDefaults { set: defaults, reset: Vec::new() };
            client(&entry.url)?.controller_command(command).await?;
        }
        if let Some(model) = &self.add_model {
            let command = ControllerCommand::add_model(model.clone());
            client(&entry.url)?.controller_command(command).await?;
            context.controller(Some(name))?.select(&context.data, Some(model.clone()))?;
        }
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

    /// The controller's name, which may stand after a cloud's.
    fn name(&self) -> Result<ControllerName> {
        let name = match self.names.as_slice() {
            [] => DEFAULT_NAME,
            [name] => name,
            [cloud, name, ..] if HERE.contains(&cloud.as_str()) => name,
            [cloud, ..] => {
                return Err(Failure::new(format!("cloud \"{cloud}\" is no place for a controller"))
                    .with_hint("it runs on this machine: `periapt bootstrap localhost NAME`"));
            }
        };
        name.parse().map_err(|error: ControllerNameError| Failure::new(error.to_string()))
    }

    /// Starts both, and writes down where they are.
    async fn start(
        &self,
        context: &Context,
        name: &ControllerName,
        directory: &ControllerDir,
    ) -> Result<ControllerEntry> {
        let controller = start_controller(name, directory, self.listen).await?;
        let mut local = Local { controller: controller.process, agent: None };
        match self.complete(context, name, directory, controller.at, &mut local).await {
            Err(failure) if !self.keep_broken => Err(failure.and_undoing(end(&local).await.map(drop))),
            done => done,
        }
    }

    async fn complete(
        &self,
        context: &Context,
        controller: &ControllerName,
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
            known.controllers.insert(controller.clone(), entry.clone());
            if !self.no_switch {
                known.current_controller = Some(controller.clone());
            }
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
    use crate::{args::Command, grammar};

    fn named(words: &[&str]) -> Result<ControllerName> {
        let cli = grammar::read(&[&["periapt", "bootstrap"], words].concat()).unwrap();
        let Command::Bootstrap(command) = cli.command else { panic!("bootstrap was asked for") };
        command.name()
    }

    #[test]
    fn a_cloud_may_stand_before_the_name_and_is_this_machine() {
        assert_eq!(named(&[]).unwrap().as_str(), "local");
        assert_eq!(named(&["staging"]).unwrap().as_str(), "staging");
        for cloud in HERE {
            assert_eq!(named(&[cloud, "staging"]).unwrap().as_str(), "staging");
        }
        let error = named(&["aws", "staging"]).unwrap_err().to_string();
        assert!(error.starts_with("cloud \"aws\" is no place for a controller"), "{error}");
        assert!(named(&["localhost", "a b"]).is_err());
    }

    #[test]
    fn an_agent_is_called_as_its_host_as_far_as_that_is_a_name() {
        assert_eq!(agent_name("node-1.example").unwrap().as_str(), "node-1.example");
        assert_eq!(agent_name("-bücher").unwrap().as_str(), "bcher");
        assert_eq!(agent_name("").unwrap().as_str(), "local");
        assert_eq!(agent_name("...").unwrap().as_str(), "local");
    }
}
