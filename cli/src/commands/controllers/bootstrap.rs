//! `bootstrap`: a controller in the background, and an agent on this machine.

mod backup;
mod log;

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use clap::Args;
use periapt_agent::{ContainerDriver, try_containers};
use periapt_blobs::SharedStore;
use periapt_controller::{RestoredLog, recover, restore};
use periapt_host_api::{
    AgentName, ModelName, Revision,
    command::ControllerCommand,
    settings::{ModelSettings, SettingKey},
};
use periapt_transport::PublicName;

use self::{backup::Backup, log::NewLog};
use crate::{
    agent_program::child_program,
    blobs_args::BlobsArgs,
    commands::Verb,
    context::{Context, listed, local_client},
    data::{
        ClientData, ControllerDir, ControllerEntry, ControllerName, ControllerNameError, CurrentModel, Local,
        LocalAgent, TlsFiles, starting::Starting,
    },
    error::{Failure, Result, with_source},
    issuer::IssuerArgs,
    local::{StartOptions, alive, listening, start_agent, start_controller, trusted},
    log_args::{LogArgs, new_identity},
    logging::silent_environment,
    parse::cloud::HERE,
    parse::settings,
    passphrase::PassphraseArg,
    process::{Interrupts, ProcessId, StartGuard, Started},
    recipients::IdentityArg,
    tls::TlsArgs,
    workload_args::WorkloadArgs,
};

/// The default name of a controller.
const DEFAULT_NAME: &str = "local";

/// Start a controller on this machine, with an agent that runs units
///
/// Both run in the background and keep their data in the client's data directory. No model is made: `periapt
/// add-model` makes one. Of two names the first is the cloud, as in Juju: localhost, the only one for a controller. A
/// bootstrap that fails or is interrupted ends both processes and removes what it has made, its log in etcd included.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt bootstrap\n  periapt bootstrap staging --listen 127.0.0.1:17070\n  periapt bootstrap prod --listen 0.0.0.0:17070 --public-name node-1.example\n  periapt bootstrap localhost staging --no-switch\n  periapt bootstrap --workloads wasm,namespaces\n  periapt bootstrap prod --oidc-issuer https://id.example --oidc-client-id periapt\n  periapt bootstrap prod --restore monday.tar --listen 0.0.0.0:17070 --public-name node-1.example\n  periapt bootstrap prod --restore tuesday.tar --restore-base monday.tar --identity key.txt\n  periapt bootstrap prod --blobs s3://periapt/prod --blobs-endpoint https://s3.example --blobs-credentials s3.credentials"
)]
pub(crate) struct Bootstrap {
    /// This client's name for the controller, by default local; the cloud may precede it
    #[arg(value_name = "[CLOUD] NAME", num_args = 0..=2)]
    names: Vec<String>,
    /// Keep the current controller selected
    #[arg(long)]
    no_switch: bool,
    /// Make a model of this name, too, and select it
    #[arg(long, value_name = "NAME")]
    add_model: Option<ModelName>,
    /// A setting KEY=VALUE of all its models, or a YAML file of settings, as model-defaults sets them; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    model_default: Vec<String>,
    /// Accepted for compatibility with Juju, with a note; a controller has no settings, and no model of its own
    #[arg(long, hide = true, value_name = "KEY=VALUE|FILE")]
    config: Vec<String>,
    /// Accepted for compatibility with Juju; there are no checks to skip
    #[arg(long, hide = true)]
    force: bool,
    /// The address that the controller listens on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A name or an address by which other machines reach the controller, for its URL and its certificate; may be
    /// repeated
    #[arg(long = "public-name", value_name = "NAME")]
    public_names: Vec<PublicName>,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    issuer: IssuerArgs,
    #[command(flatten)]
    log: Box<LogArgs>,
    #[command(flatten)]
    blobs: Box<BlobsArgs>,
    /// The backup of which this controller is made, or the directory of a controller that has ended: its data directory's
    /// controllers/NAME/controller
    #[arg(long, value_name = "PATH")]
    restore: Option<PathBuf>,
    #[command(flatten)]
    passphrase: PassphraseArg,
    /// The directory with the keys (secret-key, ca-key.pem, ca.pem) for a backup that has none
    #[arg(long, value_name = "DIR", requires = "restore", conflicts_with_all = ["passphrase_file", "identity"])]
    restore_keys: Option<PathBuf>,
    #[command(flatten)]
    identity: IdentityArg,
    /// A backup that the restored one builds on, unless it lies beside it under the name that it had; may be repeated
    #[arg(long, value_name = "FILE", requires = "restore")]
    restore_base: Vec<PathBuf>,
    /// Start no agent on this machine
    #[arg(long, conflicts_with_all = ["agent_name", "workloads"])]
    no_agent: bool,
    /// The name of this machine's agent, if not the machine's own
    #[arg(long, value_name = "NAME")]
    agent_name: Option<AgentName>,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// Keep everything after a failure; kill-controller then removes it
    #[arg(long)]
    keep_broken: bool,
}

/// Processes that bootstrap has started, before the client's file names them.
struct Begun {
    /// The controller's entry, without its processes.
    entry: ControllerEntry,
    local: Local,
    guards: Vec<StartGuard>,
}

/// The choice whether the new controller becomes the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    Here,
    No,
}

impl Verb for Bootstrap {
    async fn run(self, context: &Context) -> Result<()> {
        let name = &self.name()?;
        let defaults = settings::from_options(&self.model_default, None)?;
        let config = settings::from_options(&self.config, None)?;
        // Invalid settings are refused before a controller starts.
        let mut checked = ModelSettings::default();
        for (key, text) in &defaults {
            let key: SettingKey = key.parse().map_err(with_source)?;
            checked.set(key, Some(text)).map_err(with_source)?;
        }
        // So are files of the issuer that cannot be used.
        self.issuer.options()?;
        // So is a name that is taken, before the log, which that controller may have.
        if let Some(entry) = ClientData::read(&context.data)?.controllers.get(name) {
            return Err(already_there(name, entry));
        }
        // So is a log that cannot be used, or that other controllers have.
        self.log.is_free().await?;
        // So is a backup that is none.
        let backup = self.backup().await?;
        // So is an object store for blobs that does not answer, or does not take them.
        let blobs = self.blobs.open().await?.map(|(_, store)| store);
        // So are drivers of workloads that do not exist.
        self.workloads.drivers()?;
        let mut interrupts = Interrupts::listen()?;
        // The name is taken before any process starts, so that two bootstraps cannot share a directory.
        let mut starting = ClientData::locked(&context.data, |known| match known.controllers.get(name) {
            Some(entry) => Err(already_there(name, entry)),
            None => Starting::claim(context.data.controller(name)),
        })?;
        if starting.took_over() {
            context
                .say(format_args!("Removed what an interrupted bootstrap of controller \"{name}\" had left"));
        }
        context.say(format_args!("Creating controller \"{name}\" on this machine"));
        let (mut begun, mut log) = (None, None);
        let made = (&mut begun, &mut log);
        let started = tokio::select! {
            biased;
            signal = interrupts.next() => {
                let message = "bootstrap was interrupted, and undone".to_owned();
                Err(Failure::Interrupted { message, signal })
            }
            started = self.start(context, (name, &mut starting), made, (backup, blobs)) => started,
        };
        let switch = if self.no_switch { Switch::No } else { Switch::Here };
        let recorded = started.and_then(|()| write_down(context, name, begun.as_ref(), switch));
        let entry = match recorded {
            Ok(entry) => {
                let done = starting.done();
                release(begun);
                done?;
                entry
            }
            Err(failure) if self.keep_broken => {
                // The entry names what answers. Processes that have not answered end with this one.
                let kept = write_down(context, name, begun.as_ref(), Switch::No);
                starting.done()?;
                if kept.is_err() {
                    return Err(failure);
                }
                release(begun);
                return Err(
                    failure.with_hint(format!("`periapt kill-controller {name}` removes what is left of it"))
                );
            }
            // The started processes are ended here, and not by their guard alone: none is left when this process ends.
            Err(failure) => return Err(failure.and_undoing(self.undo(starting, log).await)),
        };
        let kept: Vec<_> = defaults.keys().cloned().collect();
        tokio::select! {
            biased;
            signal = interrupts.next() => {
                let message = format!(
                    "bootstrap was interrupted: controller \"{name}\" runs, and some options may not have been applied"
                );
                Err(Failure::Interrupted { message, signal }
                    .with_hint(format!("`periapt kill-controller {name}` removes it")))
            }
            completed = self.complete(context, name, defaults) => completed,
        }?;
        settings::tell_of_kept(context, &kept);
        for key in config.keys() {
            context.say(format_args!(
                "--config {key} has no effect: a controller has no settings, and no model of its own; \
                 --model-default sets what holds in all its models"
            ));
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
}

impl Bootstrap {
    /// Returns the controller's name, which may follow a cloud's.
    fn name(&self) -> Result<ControllerName> {
        let name = match self.names.as_slice() {
            [] => DEFAULT_NAME,
            [name] => name,
            [cloud, name, ..] if HERE.contains(&cloud.as_str()) => name,
            [cloud, ..] => {
                return Err(Failure::new(format!("cloud \"{cloud}\" cannot hold a controller"))
                    .with_hint("controllers run on this machine: `periapt bootstrap localhost NAME`"));
            }
        };
        name.parse().map_err(|error: ControllerNameError| Failure::new(error.to_string()))
    }

    /// Starts both, and passes on the processes that run.
    async fn start(
        &self,
        context: &Context,
        (name, starting): (&ControllerName, &mut Starting),
        (begun, log): (&mut Option<Begun>, &mut Option<NewLog>),
        (backup, blobs): (Option<Backup>, Option<SharedStore>),
    ) -> Result<()> {
        let directory = starting.directory().clone();
        self.try_workloads(context, &directory).await?;
        if let Some(backup) = backup {
            let place = if self.log.is_given() { RestoredLog::New } else { RestoredLog::None };
            let (into, blobs) = (directory.controller(), blobs.as_ref());
            let restored = match backup {
                Backup::File { chain, keys } => restore(*chain, &into, &keys, blobs, place).await,
                Backup::Directory(stopped) => recover(*stopped, &into, blobs, place).await,
            };
            let restored = restored.map_err(with_source)?;
            self.begin_log(log, restored.store, restored.revision).await?;
        } else {
            self.begin_log(log, new_identity()?, Revision(0)).await?;
        }
        let public_names: Vec<String> = self.public_names.iter().map(ToString::to_string).collect();
        let tls: Option<TlsFiles> = self.tls.files()?.map(Into::into);
        let (issuer, log) = (self.issuer.absolute()?, self.log.absolute()?);
        let blobs = self.blobs.kept_in(directory.path())?;
        let options = StartOptions {
            listen: self.listen,
            public_names: &public_names,
            tls: tls.as_ref(),
            issuer: issuer.as_ref(),
            log: log.as_ref(),
            blobs: blobs.as_ref(),
        };
        let record = |process: &ProcessId| starting.add(process);
        let Started { process, at: url, guard } = start_controller(name, &directory, options, record).await?;
        let client = local_client(&directory)?;
        let info = client.controller().await?;
        let listen = listening(self.listen, &url)?;
        let ca_cert = Some(trusted(&directory, tls.as_ref())?);
        let local = Local {
            controller: process,
            listen: Some(listen),
            public_names,
            tls,
            issuer,
            log,
            blobs,
            agent: None,
        };
        let addresses = listed(&info, None, &url);
        let entry =
            ControllerEntry { url, addresses, ca_cert, uuid: info.uuid, current_model: None, local: None };
        let begun = begun.insert(Begun { entry, local, guards: vec![guard] });
        if self.no_agent {
            return Ok(());
        }
        let name = match &self.agent_name {
            Some(name) => name.clone(),
            None => this_machine()?,
        };
        let agent = (&name, &self.workloads);
        let started = start_agent(agent, &directory, listen, |process| starting.add(process)).await?;
        begun.local.agent = Some(LocalAgent {
            name: name.clone(),
            process: started.process,
            workloads: self.workloads.clone(),
        });
        begun.guards.push(started.guard);
        alive(&client, &name).await
    }

    /// Makes a container on trial if the agent is to run some: a host that makes none is one error before anything starts.
    async fn try_workloads(&self, context: &Context, directory: &ControllerDir) -> Result<()> {
        let Some(driver @ ContainerDriver::Namespaces(_)) = self.workloads.drivers()?.containers else {
            return Ok(());
        };
        let tried = try_containers(child_program(silent_environment()), driver, &directory.agent()).await;
        let lacks = tried.map_err(|reason| {
            Failure::new(format!("this host cannot run workloads in containers: {reason}")).with_hint(
                "`--workloads wasm` needs nothing of the host; docs/workloads.md says what containers need",
            )
        })?;
        if let Some(lacks) = lacks {
            context.say(format_args!("On this machine, {lacks}"));
        }
        Ok(())
    }

    /// Gives the new controller its settings and its first model.
    async fn complete(
        &self,
        context: &Context,
        name: &ControllerName,
        defaults: BTreeMap<String, String>,
    ) -> Result<()> {
        let client = local_client(&context.data.controller(name))?;
        if !defaults.is_empty() {
            let command = ControllerCommand::SetModelDefaults { set: defaults, reset: Vec::new() };
            client.controller_command(command).await?;
        }
        if let Some(model) = &self.add_model {
            let command = ControllerCommand::add_model(model.clone());
            client.controller_command(command).await?;
            let controller = context.controller(Some(name))?;
            let added = CurrentModel::new(controller.user.clone(), model.clone());
            controller.select(&context.data, Some(added))?;
        }
        Ok(())
    }
}

/// Records the controller's address and processes in the client's file.
fn write_down(
    context: &Context,
    name: &ControllerName,
    begun: Option<&Begun>,
    switch: Switch,
) -> Result<ControllerEntry> {
    let begun = begun.ok_or_else(|| Failure::new("the controller has not answered"))?;
    let entry = ControllerEntry { local: Some(begun.local.clone()), ..begun.entry.clone() };
    ClientData::update(&context.data, |known| {
        known.controllers.insert(name.clone(), entry.clone());
        if switch == Switch::Here {
            known.current_controller = Some(name.clone());
        }
        Ok(())
    })?;
    Ok(entry)
}

/// Lets the recorded processes outlive this one.
fn release(begun: Option<Begun>) {
    begun.into_iter().flat_map(|begun| begun.guards).for_each(StartGuard::release);
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

/// Returns this machine's name, without the characters that an agent's name cannot have.
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
    use crate::{
        commands::{Command, controllers::Controllers},
        grammar,
    };

    fn named(words: &[&str]) -> Result<ControllerName> {
        let cli = grammar::read(&[&["periapt", "bootstrap"], words].concat()).unwrap();
        let Command::Controllers(Controllers::Bootstrap(command)) = cli.command else {
            panic!("bootstrap was asked for")
        };
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
        assert!(error.starts_with("cloud \"aws\" cannot hold a controller"), "{error}");
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
