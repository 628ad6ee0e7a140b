//! `agent`: a process that runs units, on any machine that reaches the controller.

use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Subcommand};
use periapt_agent::{AgentError, ControllerProbe, IdentityError, Options};
use periapt_client::Addresses;
use periapt_helper::{Resident, WORKLOAD_VARIABLE, give_back_what_is_freed};
use periapt_host_api::{AgentName, TagName, agent::JoinText};
use periapt_transport::{Readers, read_file};

use crate::{
    agent_program::child_program_of,
    commands::{Runtime, Verb},
    context::Context,
    error::{Explain as _, Failure, Result, with_source},
    input,
    logging::{LogFormat, Service, environment_of_processes},
    service::{
        announce, announce_metrics, begin_service, cancelled_by_signal, detach, make_way, report_failure,
    },
    workload_args::WorkloadArgs,
};

mod firewall;
mod pod;

use firewall::FirewallArgs;
use pod::Pod;

/// The variable with the join token.
const TOKEN_VARIABLE: &str = "PERIAPT_AGENT_TOKEN";

/// The most bytes of a join token that are read.
const MAX_TOKEN: u64 = 4 << 10;

/// The processes of an agent.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    Run(Box<Run>),
    /// An agent's process for one model: started by an agent, with a socket as its standard input
    #[command(hide = true)]
    Runner {
        /// Become root of the users of containers first
        #[arg(long)]
        container_users: bool,
        /// Its directories.
        directories: String,
    },
    /// An agent's process that compiles one component: started by an agent
    #[command(hide = true)]
    CompileHelper {
        /// Its order.
        order: String,
    },
    /// An agent's process that unpacks one image: started by an agent
    #[command(hide = true)]
    UnpackHelper {
        /// Its order.
        order: String,
    },
    /// An agent's process that counts the files of containers' users: started by an agent
    #[command(hide = true)]
    CountHelper {
        /// Its order.
        order: String,
    },
    /// An agent's process that holds the pods while no agent runs: started by an agent, with a socket as its standard input
    #[command(hide = true)]
    HoldPods {
        /// Its job.
        job: String,
    },
    /// End the pods of an agent that was killed: for supervisors, once no agent runs
    #[command(hide = true)]
    EndPods {
        /// The agent's directory
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
    #[command(hide = true)]
    Pod(Box<Pod>),
    /// A pod's process in the namespaces of its container: started by a pod
    #[command(hide = true)]
    PodInside {
        /// Its order.
        order: String,
    },
    /// A pod's process that runs one WebAssembly workload: started by a pod, with its order in the environment
    #[command(hide = true)]
    Workload {
        /// Its name, for lists of processes.
        name: String,
    },
}

/// Run an agent in the foreground
///
/// At its first start it joins with a token that `periapt agent-token NAME` has made: it makes a key, which never leaves
/// its directory, and the controller issues certificates for it. Then it registers, and from then on units are placed on
/// it. It prints `ready NAME` once it is registered, logs to standard error, and stops at SIGTERM or SIGINT. Hooks in
/// progress are abandoned, and run again after a restart. When its controller ends or falls silent, the agent goes on with
/// the next one that it knows: of --controller, and of the list that the controllers keep. It ends with an error and exit code 3 when the controller does
/// not know it any more, as after `periapt remove-agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt agent run --controller https://node-1.example:17070 --name worker-1 --token-file worker-1.token\n  \
                  periapt agent run --controller https://node-1.example:17070 --name worker-1 --tag ssd --storage-limit 100G\n  \
                  periapt agent run --controller https://node-1.example:17070,https://node-2.example:17070 --name worker-1"
)]
pub(crate) struct Run {
    /// The controller's URL; those of several controllers of one store are separated by commas, or the option is repeated
    #[arg(long = "controller", value_name = "URL[,URL...]", required = true)]
    controllers: Vec<String>,
    /// A file with the join token, which only its owner can read; needed until the agent has joined. The token may stand
    /// in $PERIAPT_AGENT_TOKEN as well
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// `-`: read the join token from standard input. Nothing else: all users of this machine can see command lines
    #[arg(long, value_name = "-", allow_hyphen_values = true)]
    token: Option<String>,
    /// The agent's name, unique in its controller
    #[arg(long)]
    name: AgentName,
    /// The directory for charms and compiled code; only one agent at a time uses it
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// An address by which other machines reach this one, the preferred first; its interfaces' by default
    #[arg(long = "address", value_name = "ADDRESS")]
    addresses: Vec<String>,
    /// The zone that this machine stands in; charms see it
    #[arg(long, value_name = "ZONE", default_value = "")]
    availability_zone: String,
    /// A tag for the constraints of units; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<TagName>,
    /// The most bytes of all its storage together, such as 100G; by default the room on its disk. Storage that does not
    /// fit waits until other storage is gone
    #[arg(long, value_name = "SIZE", value_parser = periapt_host_api::storage::parse_size)]
    storage_limit: Option<u64>,
    /// The most memory of all workloads together, such as 16G; any by default. A workload whose limit does not fit waits until
    /// others are gone
    #[arg(long, value_name = "SIZE", value_parser = periapt_host_api::storage::parse_size)]
    workload_memory: Option<u64>,
    /// A loopback address that answers GET /metrics in Prometheus' text format; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics_address: Option<SocketAddr>,
    /// Keep this program: `periapt upgrade-controller` does not replace it
    #[arg(long)]
    keep_program: bool,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// An address of this machine on which the open ports of its units' workloads are reached once they are exposed; those
    /// of --address, or of its interfaces, by default. May be repeated
    #[arg(long = "listen-address", value_name = "ADDRESS", requires = "workloads")]
    listen_addresses: Vec<IpAddr>,
    /// The port of these addresses on which the agents of other hosts connect for calls of units to units; 0 takes any that is
    /// free. By default 17072, or any other one if that is taken. The agent tells the controller which one it is
    #[arg(long, value_name = "PORT", requires = "workloads")]
    peer_port: Option<u16>,
    #[command(flatten)]
    firewall: FirewallArgs,
    /// The seconds for which the pods of an agent that was killed wait for the next one. Then they end
    #[arg(long, hide = true, value_name = "SECONDS", requires = "workloads", default_value_t = 300)]
    keep_pods: u64,
    /// The format of the log, if not that of $PERIAPT_LOG_FORMAT or text
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Leave the terminal's session, keep the log small that standard error goes to, and end when standard input ends
    /// without a word
    #[arg(long, hide = true, value_name = "LOG")]
    detach: Option<PathBuf>,
}

impl Verb for Agent {
    async fn run(self, _context: &Context) -> Result<()> {
        match self {
            Self::Run(run) => run.run().await,
            Self::Pod(pod) => pod.run().await,
            Self::EndPods { data } => {
                periapt_agent::end_pods(&data).await;
                Ok(())
            }
            // `main` runs them before there is a runtime.
            Self::Runner { .. }
            | Self::CompileHelper { .. }
            | Self::UnpackHelper { .. }
            | Self::CountHelper { .. }
            | Self::HoldPods { .. }
            | Self::Workload { .. }
            | Self::PodInside { .. } => Err(Failure::new("started by an agent only")),
        }
    }

    fn runtime(&self) -> Runtime<'_> {
        match self {
            Self::Run(run) => {
                Runtime::AllCores(Service { name: "periapt-agent", log_format: run.log_format })
            }
            Self::EndPods { .. } => Runtime::AllCores(Service { name: "periapt-agent", log_format: None }),
            Self::HoldPods { job } => Runtime::Own(periapt_agent::run_holder, job),
            Self::Pod(pod) => Runtime::Fenced(Service { name: "periapt-pod", log_format: None }, &**pod),
            Self::Runner { container_users: true, directories } => {
                Runtime::Own(run_runner_of_containers, directories)
            }
            Self::Runner { container_users: false, directories } => {
                Runtime::Own(periapt_agent::run_runner, directories)
            }
            Self::CompileHelper { order } => Runtime::Own(periapt_agent::run_compile_helper, order),
            Self::UnpackHelper { order } => Runtime::Own(periapt_agent::run_unpack_helper, order),
            Self::CountHelper { order } => Runtime::Own(run_count_helper, order),
            Self::Workload { name } => Runtime::Own(run_workload, name),
            Self::PodInside { order } => Runtime::Own(periapt_pod::run_contained, order),
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
        give_back_what_is_freed(Resident::open());
        let (pods, egress) = (self.workloads.drivers()?, self.workloads.egress());
        let firewall = self.firewall.options()?;
        let data = match self.data {
            Some(data) => data,
            None => crate::data::DataDir::from_environment()?.path().join("agents").join(self.name.as_str()),
        };
        let data = std::path::absolute(&data).explain(|| format!("{}", data.display()))?;
        let controllers = Addresses::read(&self.controllers).map_err(with_source)?;
        let cancel = cancelled_by_signal()?;
        let programs = match self.keep_program {
            true => None,
            false => {
                let (name, controllers) = (self.name.clone(), controllers.clone());
                let probe = ControllerProbe { name, data: data.clone(), controllers };
                let Some(programs) = begin_service(&data, &probe, &cancel).await? else {
                    // It was told to stop during the trial of another program, which has left its pods.
                    periapt_agent::end_pods(&data).await;
                    return Ok(());
                };
                Some(programs)
            }
        };
        let join = joining(self.token_file.as_deref(), self.token.as_deref())?;
        let options = Options {
            join,
            pods,
            keep_pods: Duration::from_secs(self.keep_pods),
            egress,
            addresses: self.addresses,
            listen_addresses: self.listen_addresses,
            peer_port: self.peer_port,
            firewall,
            availability_zone: self.availability_zone,
            tags: self.tags.into_iter().collect(),
            storage_limit: self.storage_limit,
            workload_memory: self.workload_memory,
            metrics_address: self.metrics_address,
            programs: programs.clone(),
            ..Options::new(
                controllers,
                self.name.clone(),
                data,
                child_program_of(pods, environment_of_processes(self.log_format)),
            )
        };
        let agent = options.build().map_err(with_source)?;
        if let Some(address) = agent.metrics_address() {
            announce_metrics(&format_args!("http://{address}/metrics"));
        }
        let mut handle = agent.handle();
        let name = self.name;
        tokio::spawn(async move {
            if handle.registered().await {
                announce(&name);
            }
        });
        let ended = agent.run(cancel).await.map_err(|error| match error {
            AgentError::Identity(removed @ IdentityError::Removed(_)) => {
                Failure::Removed(removed.to_string())
            }
            other => with_source(other),
        });
        if let (Some(programs), Ok(()) | Err(Failure::Removed(_))) = (&programs, &ended) {
            programs.end_in_order();
        }
        ended?;
        programs.map_or(Ok(()), |programs| make_way(&programs, None))
    }
}

/// Runs a workload with the order that its pod has put into the environment.
fn run_workload(_name: &str) -> ExitCode {
    periapt_workload::run_workload(&std::env::var(WORKLOAD_VARIABLE).unwrap_or_default())
}

/// Runs a runner with rights over the files of the containers' users.
fn run_runner_of_containers(directories: &str) -> ExitCode {
    // Without them, hooks with storage that has such files tell so.
    if let Err(error) = periapt_pod::enter_users_of_containers() {
        tracing::warn!(%error, "a runner has no rights over the files of other users of containers");
    }
    periapt_agent::run_runner(directories)
}

/// Runs a count helper with rights over the files of the containers' users.
fn run_count_helper(order: &str) -> ExitCode {
    // Without them, the helper says that they are missing.
    if let Err(error) = periapt_pod::enter_users_of_containers() {
        tracing::debug!(%error, "a count helper has no rights over the files of other users of containers");
    }
    periapt_agent::run_count_helper(order)
}

/// Returns the join token of the file, standard input or environment.
fn joining(file: Option<&Path>, given: Option<&str>) -> Result<Option<JoinText>> {
    let text = match (file, given) {
        (Some(path), _) => {
            let text = read_file(path, Readers::Owner).map_err(with_source)?;
            text.ok_or_else(|| Failure::new(format!("{}: no such file", path.display())))?
        }
        (None, Some("-")) => input::lines(MAX_TOKEN).next().transpose()?.unwrap_or_default(),
        (None, Some(_)) => {
            return Err(Failure::misused(format!(
                "--token takes `-` alone, because all users of this machine can see command lines: use --token-file \
                 FILE, --token - or {TOKEN_VARIABLE}"
            )));
        }
        (None, None) => match std::env::var(TOKEN_VARIABLE) {
            Ok(text) if !text.is_empty() => text,
            _ => return Ok(None),
        },
    };
    text.parse().map(Some).map_err(with_source)
}
