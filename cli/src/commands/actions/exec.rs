//! `exec`: a script of hook tools on some units, as if one of their hooks ran it, or a program of a container.

use std::collections::BTreeSet;

use clap::Args;
use periapt_host_api::{
    ApplicationName, ContainerName, RelationId, UnitName,
    action::{ActionConcurrency, ActionReceiver, EnqueueOperation},
    exec::{self, ExecError, ExecInput, ExecRequest, MAX_STDIN_BYTES},
};

use super::{
    follow::{FollowArgs, FollowMode},
    session::{SessionCommand, SessionStreams},
};
use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Failure, Result, with_source},
    input,
    output::note,
    parse::ParseError,
    print::status::all_units,
};

/// Run commands on units, in a hook context of each
///
/// One argument is a script: hook tools and the commands below, with pipes, redirections, `&&`, `if`, loops and other
/// shell syntax. Several arguments are one command with its arguments. There are no programs in a sandbox: any other
/// command is not found, with return code 127. A script begins in the charm's directory and has the files that a hook
/// has: the charm's own, an empty /tmp, and the unit's storage. The setting `action-timeout` bounds its time.
///
/// All effects of the hook tools are committed together at the end of the script, whatever its return code is. A unit
/// in error runs scripts, too. Exit code 1 means that a script's return code was not 0 on some unit.
/// `help-hook-commands` lists the hook tools. Those for secret content are left out, because scripts and results are
/// stored with the task.
///
/// With --container, the command is a program of the unit's container with its arguments, run by Pebble as the
/// container's user, without a shell. Output and return code are the task's, too, and a cancelled task kills the program.
/// The program `pebble` is there in each container: services, checks, plan, logs, notices, start, stop, restart and replan.
///
/// With --stdin and one unit it is a dialogue, and no task: standard input goes to the program as it comes, its output
/// comes back as it is written, and this command ends with the program's exit code. --tty gives the program a terminal of
/// this one's size, which gets each key. The program ends with this command, and after four hours without a word. With
/// several units, or with an option for tasks such as --background or --format, the input is read to its end before, up to
/// 40 KiB, and goes with each task.
#[derive(Debug, Args)]
#[command(after_help = "\
Commands beside hook tools:
  : [ bash break cat cd command continue cut echo env exit export false grep head
  hostname ls mkdir printenv printf pwd read rm seq set sh sleep sort tail tee test
  touch tr true uniq unset wc

Examples:
  periapt exec --unit mysql/0 -- relation-ids db
  periapt exec --unit mysql/leader -- leader-set key=value
  periapt exec --application mysql --format json -- config-get
  periapt exec -u mysql/0 --relation db:1 --remote-unit wordpress/0 -- relation-get
  periapt exec --all --background -- status-set active
  periapt exec --all --execution-group rolling -- status-set maintenance
  periapt exec -u mysql/0 'for id in $(relation-ids db); do relation-list -r $id; done | sort'
  periapt exec -u web/0 --container nginx -- nginx -t
  periapt exec -u web/0 --container nginx -- pebble services
  periapt exec -u web/0 --container nginx -i -- sh -c 'cat > /tmp/page' < page.html
  periapt exec --container nginx -it web/0 -- sh
  periapt exec -u mysql/0 'test -f /srv/data/ready && cat /srv/data/ready'")]
pub(crate) struct Exec {
    /// The units; APPLICATION/leader is the present leader
    #[arg(short, long, value_name = "UNIT", value_delimiter = ',')]
    unit: Vec<ActionReceiver>,
    /// All units of these applications
    #[arg(short, long, visible_alias = "app", value_name = "APPLICATION", value_delimiter = ',')]
    application: Vec<ApplicationName>,
    /// All units of the model
    #[arg(long, conflicts_with_all = ["unit", "application"])]
    all: bool,
    /// The default relation of the hook tools: ID or ENDPOINT:ID
    #[arg(short, long, value_name = "ID", value_parser = relation_id)]
    relation: Option<RelationId>,
    /// The unit at the relation's other end; by default the only one
    #[arg(long, value_name = "UNIT", requires = "relation")]
    remote_unit: Option<UnitName>,
    /// Run the command as a program in this container of each unit, and not as a script
    #[arg(long, value_name = "CONTAINER", conflicts_with_all = ["relation", "remote_unit"])]
    container: Option<ContainerName>,
    /// Give the program standard input; a task takes up to 40 KiB, and keeps it until it ends
    #[arg(short = 'i', long, visible_alias = "interactive", requires = "container")]
    stdin: bool,
    /// Give the program this terminal, and standard input with it
    #[arg(short = 't', long, requires = "container")]
    tty: bool,
    /// Run beside other actions of the machine; --parallel=false waits for its turn among those that run one by one
    #[arg(long, default_value_t = true)]
    parallel: bool,
    /// Run in turn with other actions of the machine in this group
    #[arg(long, value_name = "GROUP")]
    execution_group: Option<String>,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    model: ModelArg,
    /// The script, or the command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND [ARGUMENT...]")]
    command: Vec<String>,
}

impl Verb for Exec {
    async fn run(mut self, context: &Context) -> Result<()> {
        self.take_unit();
        if self.unit.is_empty() && self.application.is_empty() && !self.all {
            return Err(Failure::new(
                "You must specify a target, either through --all, --application or --unit",
            ));
        }
        let model = context.model(&self.model)?;
        if let Some((receiver, container, streams)) = self.dialogue()? {
            let unit = unit_of(&model, receiver).await?;
            let command = SessionCommand { unit, container, command: self.command, streams };
            return command.run(&model).await;
        }
        let receivers = self.receivers(&model).await?;
        let mut request = match self.request() {
            Ok(request) => request,
            Err(refused) => return nowhere(&model, &receivers).await?.map_or(Err(refused), note_unscheduled),
        };
        if self.stdin {
            request.stdin = Some(given_input()?);
        }
        let (action, parameters) = (exec::ACTION.to_owned(), request.into_parameters());
        let execution_group = self.execution_group.filter(|group| !group.is_empty());
        let turns = ActionConcurrency { parallel: Some(self.parallel), execution_group };
        let request = EnqueueOperation { action, receivers, parameters, turns };
        self.follow.carry_out(context, &model, request, FollowMode::Exec).await
    }
}

impl Exec {
    /// Takes the unit in front of a command in a container, as `kubectl exec` has it: `exec --container nginx web/0 -- sh`.
    fn take_unit(&mut self) {
        let names_units = self.all || !self.unit.is_empty() || !self.application.is_empty();
        let [first, _, ..] = self.command.as_slice() else { return };
        if self.container.is_none() || names_units {
            return;
        }
        if let Ok(receiver) = first.parse() {
            self.unit.push(receiver);
            self.command.remove(0);
            if self.command.first().is_some_and(|word| word == "--") {
                self.command.remove(0);
            }
        }
    }

    /// Returns the unit, the container and the streams of a dialogue; none for a task.
    fn dialogue(&self) -> Result<Option<(ActionReceiver, ContainerName, SessionStreams)>> {
        let streams = match (self.tty, self.stdin) {
            (true, _) => SessionStreams::Terminal,
            (false, true) => SessionStreams::Pipes,
            (false, false) => return Ok(None),
        };
        let is_of_tasks = self.execution_group.is_some() || !self.parallel || !self.follow.is_default();
        // Pebble's own commands are the agent's, and no program of each container.
        let is_pebble = self.command.first().is_some_and(|program| program == "pebble");
        match (&self.container, self.unit.as_slice()) {
            (Some(container), [unit])
                if !self.all && self.application.is_empty() && !is_of_tasks && (self.tty || !is_pebble) =>
            {
                Ok(Some((unit.clone(), container.clone(), streams)))
            }
            _ if self.tty => Err(Failure::misused(
                "--tty is for a dialogue with one unit, without options for tasks such as --background and --format",
            )),
            _ => Ok(None),
        }
    }

    /// Builds the request that the controller stores with the task.
    fn request(&self) -> Result<ExecRequest> {
        let request = match &self.container {
            Some(container) => ExecRequest::in_container(&self.command, container.clone()),
            None => ExecRequest::new(&self.command, self.relation, self.remote_unit.clone()),
        };
        request.map_err(explained)
    }

    /// Returns the named units, and those of the named applications.
    async fn receivers(&self, model: &Model) -> Result<Vec<ActionReceiver>> {
        let mut receivers = self.unit.clone();
        if self.all || !self.application.is_empty() {
            let status = model.client().status(&model.selector).await?;
            for name in &self.application {
                if !status.applications.contains_key(name.as_str()) {
                    return Err(Failure::new(format!("application {:?} not found", name.as_str())));
                }
            }
            let named = |name: &UnitName| self.all || self.application.contains(name.application());
            let units: BTreeSet<UnitName> = all_units(&status)?.into_iter().filter(named).collect();
            receivers.extend(units.into_iter().map(ActionReceiver::Unit));
        }
        match receivers.is_empty() {
            true => Err(Failure::new("no units to run on")),
            false => Ok(receivers),
        }
    }
}

/// Returns the reasons why no unit can run the command, if there is no unit. Juju checks that before it parses a
/// command, and programs that drive it read the messages about units.
async fn nowhere(model: &Model, receivers: &[ActionReceiver]) -> Result<Option<Vec<String>>> {
    let status = model.client().status(&model.selector).await?;
    let units = all_units(&status)?;
    let missing = receivers.iter().filter_map(|receiver| match receiver {
        ActionReceiver::Unit(unit) if !units.contains(unit) => Some(format!("unit {unit:?} not found")),
        ActionReceiver::Leader(name) if !status.applications.contains_key(name.as_str()) => {
            Some(format!("application {name:?} not found"))
        }
        _ => None,
    });
    let missing: Vec<String> = missing.collect();
    Ok((missing.len() == receivers.len()).then_some(missing))
}

/// Returns the unit of a dialogue.
async fn unit_of(model: &Model, receiver: ActionReceiver) -> Result<UnitName> {
    let application = match receiver {
        ActionReceiver::Unit(unit) => return Ok(unit),
        ActionReceiver::Leader(application) => application,
    };
    let status = model.client().status(&model.selector).await?;
    if !status.applications.contains_key(application.as_str()) {
        return Err(Failure::new(format!("application {:?} not found", application.as_str())));
    }
    let mut units = status.units();
    let leads = units.find(|placed| placed.unit.leader && placed.application() == application.as_str());
    match leads {
        Some(placed) => Ok(placed.name.parse()?),
        None => Err(Failure::new(format!("application {:?} has no leader yet", application.as_str()))),
    }
}

/// Prints that nothing was scheduled. The exit code is 0, as Juju's.
fn note_unscheduled(reasons: Vec<String>) -> Result<()> {
    note(format_args!("Operation failed to schedule any tasks:\n{}", reasons.join("\n")));
    Ok(())
}

/// Reads the input of a program to its end.
fn given_input() -> Result<ExecInput> {
    if input::is_terminal() {
        note(format_args!("The program starts at the end of the input: Ctrl-D ends it"));
    }
    ExecInput::new(input::stdin(MAX_STDIN_BYTES as u64)?).map_err(with_source)
}

/// The hint that leads to the list of tools.
const TOOLS: &str = "`periapt help-hook-commands` lists hook tools, `periapt help exec` what there is beside";

fn explained(error: ExecError) -> Failure {
    let hint = match &error {
        ExecError::Empty => TOOLS,
        ExecError::Confidential(_) => {
            "`periapt show-secret --reveal` shows content, `update-secret` changes it"
        }
        ExecError::NoRelation(_)
        | ExecError::RelationInContainer
        | ExecError::StdinOfScript
        | ExecError::LargeStdin(_)
        | ExecError::Parameters(_) => {
            return Failure::new(error.to_string());
        }
    };
    Failure::new(error.to_string()).with_hint(hint)
}

/// Parses `ENDPOINT:ID` or `ID`, and ignores the endpoint, as hook tools do.
fn relation_id(text: &str) -> Result<RelationId, ParseError> {
    let number = text.rsplit_once(':').map_or(text, |(_, number)| number);
    number.parse().map(RelationId).map_err(|_| ParseError::Form(format!("invalid relation id {text:?}")))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;

    #[test]
    fn help_names_the_commands_that_there_are() {
        let help = Exec::augment_args(clap::Command::new("exec")).get_after_help().unwrap().to_string();
        let (_, behind) = help.split_once("Commands beside hook tools:\n").unwrap();
        let (named, _) = behind.split_once("\n\n").unwrap();
        assert_eq!(
            named.split_whitespace().collect::<Vec<_>>(),
            periapt_shell::commands().collect::<Vec<_>>()
        );
    }

    fn parsed(words: &[&str]) -> Exec {
        let command = Exec::augment_args(clap::Command::new("exec"));
        let mut read = Exec::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap();
        read.take_unit();
        read
    }

    #[test]
    fn a_dialogue_is_with_one_unit_and_no_task() {
        let unit = ActionReceiver::Unit("web/0".parse().unwrap());
        let web: ContainerName = "web".parse().unwrap();
        let dialogue = |words: &[&str]| {
            let read = parsed(&[&["exec", "--container", "web"], words].concat());
            read.dialogue().map(|found| (found, read.command))
        };
        for (words, streams) in [
            (&["-it", "web/0", "--", "sh", "-c", "--"][..], SessionStreams::Terminal),
            (&["-t", "-u", "web/0", "--", "sh", "-c", "--"][..], SessionStreams::Terminal),
            (&["-i", "web/0", "sh", "-c", "--"][..], SessionStreams::Pipes),
            (&["-i", "-u", "web/0", "--", "sh", "-c", "--"][..], SessionStreams::Pipes),
        ] {
            let (found, command) = dialogue(words).unwrap();
            assert_eq!(found, Some((unit.clone(), web.clone(), streams)), "{words:?}");
            assert_eq!(command, ["sh", "-c", "--"], "{words:?}");
        }
        for words in [
            &["-u", "web/0", "--", "sh"][..],
            &["-i", "-u", "web/0,web/1", "--", "sh"][..],
            &["-i", "--all", "--", "web/0", "sh"][..],
            &["-i", "-u", "web/0", "--background", "--", "sh"][..],
            &["-i", "-u", "web/0", "--format", "json", "--", "sh"][..],
            &["-i", "-u", "web/0", "--", "pebble", "services"][..],
        ] {
            assert!(dialogue(words).unwrap().0.is_none(), "{words:?}");
        }
        for words in [&["-t", "--all", "--", "sh"][..], &["-it", "-u", "a/0,a/1", "--", "sh"][..]] {
            assert!(dialogue(words).unwrap_err().to_string().contains("one unit"), "{words:?}");
        }
    }

    #[test]
    fn a_relation_is_named_with_or_without_its_endpoint() {
        for text in ["7", "db:7"] {
            assert_eq!(relation_id(text).ok(), Some(RelationId(7)));
        }
        assert!(relation_id("db").is_err());
    }
}
