//! `controller`: the process itself, and the start and stop of a controller that was bootstrapped here.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use periapt_controller::{Listen, Options, Program, RunError, TlsListen};
use periapt_helper::{Resident, give_back_what_is_freed, give_large_allocations_back};
use periapt_transport::PublicName;

use crate::{
    blobs_args::BlobsArgs,
    commands::{Runtime, Verb, controllers::join::Join},
    context::{Context, local_client},
    data::{ClientData, ControllerName, LocalAgent, starting},
    error::{Explain as _, Failure, Result, with_source},
    files::make_private,
    issuer::IssuerArgs,
    local::{self, StartOptions},
    log_args::{KeptData, LogArgs, new_identity},
    logging::{LogFormat, Service},
    process::ProcessId,
    program,
    service::{
        ControllerService, announce, begin_service, cancelled_by_signal, detach, make_way, report_failure,
    },
    tls::TlsArgs,
};

/// The least size of an allocation of a controller with its own mapping, in bytes: the memory for the hash of a password has
/// 19 MiB, and each thread that hashes would keep several of them.
const MAPPED_ALONE: usize = 8 << 20;

/// The operations on a controller's process.
#[derive(Debug, Subcommand)]
pub(crate) enum Controller {
    Run(Run),
    Join(Join),
    Start(Start),
    Stop(Stop),
    /// A controller's process that checks one charm: started by a controller
    #[command(hide = true)]
    CheckCharm {
        /// Its order.
        order: String,
    },
}

/// Run a controller in the foreground
///
/// It prints `ready URL` once it answers, logs to standard error, and stops at SIGTERM or SIGINT. Committed changes
/// are kept, and requests in progress are answered first.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  periapt controller run --data /srv/periapt --listen 127.0.0.1:17070 --name prod"
)]
pub(crate) struct Run {
    /// The directory for its store and its blobs; only one controller at a time uses it
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The address that it listens on; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:17070")]
    listen: SocketAddr,
    /// A name or an address by which clients reach it, for its URL and its certificate; may be repeated
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
    /// The name that it takes at its first start
    #[arg(long, default_value = "local")]
    name: ControllerName,
    /// The format of the log, if not that of $PERIAPT_LOG_FORMAT or text
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Leave the terminal's session, keep the log small that standard error goes to, and end when standard input ends
    /// without a word
    #[arg(long, hide = true, value_name = "LOG")]
    detach: Option<PathBuf>,
}

/// Start a controller again that was bootstrapped on this machine, and its agent
///
/// A process that is running is left alone. The controller keeps its address, so that agents on other machines find
/// it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt controller start\n  periapt controller start staging\n  periapt controller start --no-tls-cert"
)]
pub(crate) struct Start {
    /// The controller, if not the current one
    name: Option<ControllerName>,
    /// The address that it listens on from now on
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Show the controller's own certificate alone from now on, and none that it was given
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key"])]
    no_tls_cert: bool,
    #[command(flatten)]
    issuer: IssuerArgs,
    #[command(flatten)]
    blobs: BlobsArgs,
    /// End logins at an issuer; open sessions stay
    #[arg(long, conflicts_with = "oidc_issuer")]
    no_oidc_issuer: bool,
}

/// Stop a controller that was bootstrapped on this machine, and its agent
///
/// Nothing is lost: `periapt controller start` starts both again.
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// The controller, if not the current one
    name: Option<ControllerName>,
}

impl Verb for Controller {
    async fn run(self, context: &Context) -> Result<()> {
        match self {
            Self::Run(run) => run.run().await,
            Self::Join(join) => join.run(context).await,
            Self::Start(start) => start.run(context).await,
            Self::Stop(stop) => stop.run(context).await,
            // `main` runs it before there is a runtime.
            Self::CheckCharm { .. } => Err(Failure::new("started by a controller only")),
        }
    }

    fn runtime(&self) -> Runtime<'_> {
        match self {
            Self::Run(run) => {
                Runtime::AllCores(Service { name: "periapt-controller", log_format: run.log_format })
            }
            Self::Join(_) | Self::Start(_) | Self::Stop(_) => Runtime::OneThread,
            Self::CheckCharm { order } => Runtime::Own(periapt_controller::run_check_helper, order),
        }
    }
}

impl Run {
    async fn run(self) -> Result<()> {
        let Some(log) = self.detach.clone() else { return self.serve().await };
        detach(log)?;
        report_failure(self.serve().await)
    }

    async fn serve(self) -> Result<()> {
        give_large_allocations_back(MAPPED_ALONE);
        give_back_what_is_freed(Resident::open());
        // A store of blobs that cannot be used is told before anything is written.
        let shared = self.blobs.open().await?;
        let data = std::path::absolute(&self.data).explain(|| format!("{}", self.data.display()))?;
        // So is a log that cannot be used, or that other controllers have.
        let kept = KeptData::of(&data);
        if kept == KeptData::Nothing {
            self.log.is_free().await?;
        }
        make_private(&data)?;
        let cancel = cancelled_by_signal()?;
        let service = ControllerService { log: LogArgs::clone(&self.log) };
        let Some(programs) = begin_service(&data, &service, &cancel).await? else { return Ok(()) };
        let name = self.name.as_str();
        let listen = TlsListen::in_directory(&data, self.listen, self.public_names).map_err(with_source)?;
        let listen = TlsListen { given: self.tls.files()?, ..listen };
        let engine = periapt_sandbox::engine_version();
        let mut options = Options::in_directory(name, &data, Listen::Tls(listen), engine, check_helper())
            .map_err(with_source)?;
        options.programs = Some(programs.clone());
        options.oidc = self.issuer.options()?;
        let mut place = None;
        if let Some((options_of_store, store)) = shared {
            options = options.with_shared_blobs(&store).map_err(with_source)?;
            place = Some(options_of_store);
        }
        options.replication = self.log.open(new_identity()?, kept, place).await?;
        let service = options.build().await.map_err(with_source)?;
        let mut handle = service.handle();
        let listens = handle.address();
        tokio::spawn(async move {
            if handle.serving().await {
                announce(&handle.url());
                tracing::info!(address = %handle.address(), data = %data.display(), "controller started");
            }
        });
        service.run(cancel).await.map_err(|error| match error {
            RunError::Removed(message) => Failure::Removed(message),
            other => with_source(other),
        })?;
        make_way(&programs, Some(listens))
    }
}

/// Returns the program that the controller starts as its helper: this same binary, even if its file was replaced
/// meanwhile, with an empty environment.
fn check_helper() -> Program {
    Program {
        path: program::FILE.into(),
        arguments: vec!["controller".into(), "check-charm".into()],
        environment: Vec::new(),
    }
}

/// The message to the operator of a controller that an earlier version made, which had neither users nor TLS.
const UPGRADED: &str = "It was made by an earlier version, and has users now. This client acts as user \"admin\" on the \
                        controller's host, without a login. Other clients register once: `periapt \
                        change-user-password admin --reset` prints the text for their `periapt register`, and \
                        `periapt add-user NAME` that of another user.";

impl Start {
    async fn run(self, context: &Context) -> Result<()> {
        let known = context.controller(self.name.as_ref())?;
        let (name, mut entry) = (known.name, known.entry);
        let before = (entry.url.clone(), entry.ca_cert.clone());
        let Some(mut processes) = entry.local.clone() else { return Err(elsewhere(&name)) };
        let directory = context.data.controller(&name);
        starting::forget(&directory)?;
        // A started process ends with this one until it is recorded.
        let mut guard = None;
        let unrecorded = |_: &ProcessId| Ok(());
        let (given, issuer) = (self.tls.files()?, self.issuer.absolute()?);
        self.issuer.options()?;
        self.blobs.open().await?;
        if processes.controller.is_running() {
            let changed =
                self.listen.is_some() || given.is_some() || issuer.is_some() || self.blobs.is_given();
            if changed || self.no_tls_cert || self.no_oidc_issuer {
                let text =
                    format!("controller {name} is running, and keeps the options that it was started with");
                return Err(Failure::new(text).with_hint("stop it before: `periapt controller stop`"));
            }
            context.say(format_args!("Controller \"{name}\" is running at {}", entry.url));
        } else {
            let listen = match self.listen.or(processes.listen) {
                Some(listen) => listen,
                None => address_of(&entry.url)?,
            };
            if let Some(files) = given {
                processes.tls = Some(files.into());
            }
            if self.no_tls_cert {
                processes.tls = None;
            }
            if issuer.is_some() || self.no_oidc_issuer {
                processes.issuer = issuer;
            }
            if let Some(blobs) = self.blobs.kept_in(directory.path())? {
                processes.blobs = Some(blobs);
            }
            let options = StartOptions {
                listen,
                public_names: &processes.public_names,
                tls: processes.tls.as_ref(),
                issuer: processes.issuer.as_ref(),
                log: processes.log.as_ref(),
                blobs: processes.blobs.as_ref(),
            };
            let started = local::start_controller(&name, &directory, options, unrecorded).await;
            let started = started.map_err(|failure| {
                let without = match &options.tls {
                    Some(_) => "; --no-tls-cert starts it without the certificate that it was given",
                    None => "",
                };
                failure.with_hint(format!(
                    "its log is {}; if {listen} is used by another program, --listen 127.0.0.1:0 takes another \
                     port, which agents on other machines must then use{without}",
                    directory.controller_log().display()
                ))
            })?;
            processes.controller = started.process;
            processes.listen = Some(local::listening(listen, &started.at)?);
            entry.url = started.at;
            let upgraded = entry.ca_cert.is_none();
            entry.ca_cert = Some(local::trusted(&directory, processes.tls.as_ref())?);
            guard = Some(started.guard);
            context.say(format_args!("Controller \"{name}\" started at {}", entry.url));
            if upgraded {
                context.say(UPGRADED);
            }
        }
        let listens = match processes.listen {
            Some(listens) => listens,
            None => address_of(&entry.url)?,
        };
        let moved = (&entry.url, &entry.ca_cert) != (&before.0, &before.1);
        entry.local = Some(processes.clone());
        store(context, &name, &entry)?;
        if let Some(guard) = guard {
            guard.release();
        }
        if let Some(agent) = &processes.agent {
            let (name_of_agent, workloads) = (agent.name.clone(), agent.workloads.clone());
            if moved {
                local::end_process(&agent.process).await?;
            }
            if !agent.process.is_running() {
                let started =
                    local::start_agent((&name_of_agent, &workloads), &directory, listens, unrecorded).await?;
                let process = started.process;
                processes.agent = Some(LocalAgent { name: name_of_agent.clone(), process, workloads });
                entry.local = Some(processes);
                store(context, &name, &entry)?;
                started.guard.release();
                context.say(format_args!("Agent \"{name_of_agent}\" started"));
            }
            local::alive(&local_client(&directory)?, &name_of_agent).await?;
        }
        Ok(())
    }
}

impl Stop {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.name.as_ref())?;
        let Some(processes) = &controller.entry.local else { return Err(elsewhere(&controller.name)) };
        for killed in local::end(processes).await? {
            context.say(format_args!("The {killed} did not end by itself, and was killed"));
        }
        context.say(format_args!("Controller \"{}\" is stopped", controller.name));
        Ok(())
    }
}

fn store(context: &Context, name: &ControllerName, entry: &crate::data::ControllerEntry) -> Result<()> {
    ClientData::update(&context.data, |data| {
        let known = data.controllers.get_mut(name).ok_or_else(|| crate::context::unknown_controller(name))?;
        if known.url != entry.url {
            known.url = entry.url.clone();
            // They named the controller at its former address. The next answer has them anew.
            known.addresses.clear();
        }
        known.ca_cert = entry.ca_cert.clone();
        known.local = entry.local.clone();
        Ok(())
    })
}

fn elsewhere(name: &ControllerName) -> Failure {
    Failure::new(format!("controller {name} was not bootstrapped on this machine"))
        .with_hint("its process is started and stopped where it runs")
}

/// Parses the address in a URL that `bootstrap` recorded.
fn address_of(url: &str) -> Result<SocketAddr> {
    let address = url.split_once("://").map_or(url, |(_, address)| address).trim_end_matches('/');
    address.parse().explain(|| format!("{url} names no address"))
}
