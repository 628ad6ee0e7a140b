//! `exec`: a hook tool on some units, as if one of their hooks ran it.

use std::collections::BTreeSet;

use clap::Args;
use periapt_host_api::{
    ApplicationName, RelationId, UnitName,
    action::{ActionReceiver, EnqueueOperation, Turns},
    exec::{self, ExecError, ExecRequest},
};

use super::run::{FollowArgs, Manner};
use crate::{
    commands::status::all_units,
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    output::note,
};

/// Run a hook tool on units, in a hook context of each
///
/// One tool with its arguments: there is no shell in a sandbox, and nothing else that could be run. What the tool asks
/// for is committed whatever its exit code is, and a unit in error runs it, too. Exit code 1 means that the tool's was
/// not 0 on some unit. `help-hook-commands` lists the tools; those that speak of secrets' content are left out, because
/// commands and results are kept with the task.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt exec --unit mysql/0 -- relation-ids db
  periapt exec --unit mysql/leader -- leader-set key=value
  periapt exec --application mysql --format json -- config-get
  periapt exec -u mysql/0 --relation db:1 --remote-unit wordpress/0 -- relation-get
  periapt exec --all --background -- status-set active
  periapt exec --all --execution-group rolling -- status-set maintenance")]
pub(crate) struct Exec {
    /// On these units; APPLICATION/leader is whichever leads now
    #[arg(short, long, value_name = "UNIT", value_delimiter = ',')]
    unit: Vec<ActionReceiver>,
    /// On all units of these applications
    #[arg(short, long, visible_alias = "app", value_name = "APPLICATION", value_delimiter = ',')]
    application: Vec<ApplicationName>,
    /// On all units of the model
    #[arg(long, conflicts_with_all = ["unit", "application"])]
    all: bool,
    /// The relation that the tool is about where it names none: ID or ENDPOINT:ID
    #[arg(short, long, value_name = "ID", value_parser = relation_id)]
    relation: Option<RelationId>,
    /// The unit at the relation's other end; the only one there is, unless said
    #[arg(long, value_name = "UNIT", requires = "relation")]
    remote_unit: Option<UnitName>,
    /// Run beside other actions of the machine; --parallel=false waits for its turn among those that run one by one
    #[arg(long, default_value_t = true)]
    parallel: bool,
    /// Run one after the other with what else of the machine is in this group
    #[arg(long, value_name = "GROUP")]
    execution_group: Option<String>,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    model: ModelArg,
    /// The tool and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "TOOL [ARGUMENT...]")]
    command: Vec<String>,
}

impl Exec {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        if self.unit.is_empty() && self.application.is_empty() && !self.all {
            return Err(Failure::new(
                "You must specify a target, either through --all, --application or --unit",
            ));
        }
        let model = context.model(&self.model)?;
        let receivers = self.receivers(&model).await?;
        let request = match self.request() {
            Ok(request) => request,
            Err(refused) => return nowhere(&model, &receivers).await?.map_or(Err(refused), told),
        };
        let (action, parameters) = (exec::ACTION.to_owned(), request.into_parameters());
        let execution_group = self.execution_group.filter(|group| !group.is_empty());
        let turns = Turns { parallel: Some(self.parallel), execution_group };
        let request = EnqueueOperation { action, receivers, parameters, turns };
        self.follow.carry_out(context, &model, request, Manner::Exec).await
    }

    /// What is to be run, if a hook tool is.
    fn request(&self) -> Result<ExecRequest> {
        let request =
            ExecRequest::new(&self.command, self.relation, self.remote_unit.clone()).map_err(explained)?;
        if !periapt_hook::is_hook_tool(request.tool()) {
            let text = format!("there is no shell in a sandbox: {:?} is no hook tool", request.tool());
            return Err(Failure::new(text).with_hint(TOOLS));
        }
        Ok(request)
    }

    /// The units that are named, and those of the applications that are.
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

/// Why none of the units could run anything, if none is there: Juju finds that out before it reads a command, and programs
/// that drive it go by what it says of units.
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

/// Tells that nothing was scheduled. Juju's exit code is 0.
fn told(reasons: Vec<String>) -> Result<()> {
    note(format_args!("Operation failed to schedule any tasks:\n{}", reasons.join("\n")));
    Ok(())
}

/// Where the tools are listed.
const TOOLS: &str = "`periapt help-hook-commands` lists what can be run";

fn explained(error: ExecError) -> Failure {
    let hint = match &error {
        ExecError::Shell(_) | ExecError::Empty => TOOLS,
        ExecError::Confidential(_) => {
            "`periapt show-secret --reveal` shows content, `update-secret` changes it"
        }
        ExecError::Quote(_) | ExecError::NoRelation(_) | ExecError::Parameters(_) => {
            return Failure::new(error.to_string());
        }
    };
    Failure::new(error.to_string()).with_hint(hint)
}

/// `ENDPOINT:ID` or `ID`; the endpoint is of no account, as for the tools.
fn relation_id(text: &str) -> Result<RelationId, String> {
    let number = text.rsplit_once(':').map_or(text, |(_, number)| number);
    number.parse().map(RelationId).map_err(|_| format!("invalid relation id {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_named_with_or_without_its_endpoint() {
        for text in ["7", "db:7"] {
            assert_eq!(relation_id(text), Ok(RelationId(7)));
        }
        assert!(relation_id("db").is_err());
    }
}
