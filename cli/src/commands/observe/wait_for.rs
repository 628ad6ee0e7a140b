//! `wait-for`: waits on a model's stream of statuses for a condition of a script.

mod condition;
mod goal;
mod query;

use std::time::Duration;

use clap::{Args, Subcommand};
use periapt_host_api::{ApplicationName, MachineId, UnitName, status::FullStatus};
use tokio::time::timeout;

use self::{
    condition::{NotYet, application_is, machine_is_started, model_is_settled, unit_is},
    goal::{Goal, GoalArgs},
    query::EntityKind,
};
use crate::{
    commands::Verb,
    context::{Context, ModelArg, ModelRef},
    error::{Failure, Result},
    follow::status::StatusFollower,
    output::{Sink, to_yaml},
    parse::duration,
};

/// Wait until a model, an application or a unit reaches a goal
///
/// Follows the model's stream of statuses, and waits for an unreachable controller, too. A query, in Juju's language,
/// is a condition of its own: fields (`status`, `life`, ...), texts in double quotes, numbers, `==`, `!=`, `<`, `<=`,
/// `>`, `>=`, `&&`, `||`, `!`, parentheses, `len(units)`, `startsWith(name, "my")`, `endsWith`, and `forEach(units, u
/// => u.workload-status == "active")`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt wait-for model
  periapt wait-for application wordpress --status blocked
  periapt wait-for application wordpress --units 5 --message '*port 8080*'
  periapt wait-for unit wordpress/2 --gone
  periapt wait-for application wordpress --query 'status==\"active\" && len(units)>=3' --timeout 5m
  periapt wait-for model blog --query 'forEach(units, u => u.workload-status==\"active\")'")]
pub(crate) struct WaitFor {
    #[command(subcommand)]
    what: GoalCommand,
}

#[derive(Debug, Subcommand)]
enum GoalCommand {
    Model(ModelSettled),
    Machine(Machine),
    Application(Application),
    Unit(Unit),
}

#[derive(Debug, Args)]
struct Common {
    /// The longest wait
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    timeout: Duration,
    #[command(flatten)]
    model: ModelArg,
}

/// Wait until all units of a model are settled, their agents idle, and nothing is being removed
///
/// A unit is settled when it is active, or has started and its charm never sets a status. The command does not see a
/// change that no unit has begun to handle: wait for its result, by `--message` or `--units`.
#[derive(Debug, Args)]
struct ModelSettled {
    /// The model, if not the current one
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL", conflicts_with = "model")]
    name: Option<ModelRef>,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    common: Common,
}

/// Wait until a machine exists and its agent runs it
#[derive(Debug, Args)]
struct Machine {
    /// Its number
    machine: MachineId,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    common: Common,
}

/// Statuses of a workload.
const STATUSES: [&str; 7] = ["active", "waiting", "maintenance", "blocked", "error", "terminated", "unknown"];

/// Statuses of an agent.
const AGENT_STATUSES: [&str; 6] = ["idle", "executing", "allocating", "error", "failed", "lost"];

/// The condition on units.
#[derive(Debug, Clone, Args)]
pub(crate) struct UnitGoal {
    /// The workload's status; by default active, or unknown after the start of a charm that never sets one
    #[arg(long, conflicts_with_all = ["gone", "query"], value_parser = STATUSES)]
    pub(crate) status: Option<String>,
    /// The workload's message; `*` stands for anything
    #[arg(long, value_name = "PATTERN", default_value = "*", conflicts_with_all = ["gone", "query"])]
    pub(crate) message: String,
    /// The status of its agent
    #[arg(
        long,
        default_value = "idle",
        conflicts_with_all = ["gone", "query"],
        value_parser = AGENT_STATUSES
    )]
    pub(crate) agent: String,
    /// Wait until it does not exist any more
    #[arg(long, conflicts_with = "query")]
    pub(crate) gone: bool,
}

/// Wait until all units of an application reach a goal
#[derive(Debug, Args)]
struct Application {
    /// The application
    name: ApplicationName,
    /// The number of its units
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["gone", "query"])]
    units: Option<usize>,
    #[command(flatten)]
    wanted: UnitGoal,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    common: Common,
}

/// Wait until a unit reaches a goal
#[derive(Debug, Args)]
struct Unit {
    /// The unit
    name: UnitName,
    #[command(flatten)]
    wanted: UnitGoal,
    #[command(flatten)]
    goal: GoalArgs,
    #[command(flatten)]
    common: Common,
}

impl Verb for WaitFor {
    async fn run(self, context: &Context) -> Result<()> {
        match self.what {
            GoalCommand::Model(mut command) => {
                command.common.model.model = command.name.take().or(command.common.model.model);
                match command.goal.of(EntityKind::Model, "")? {
                    Some(goal) => command.common.reach(context, &goal).await,
                    None => command.common.wait(context, |status| Ok(model_is_settled(status)?)).await,
                }
            }
            GoalCommand::Machine(Machine { machine, goal, common }) => {
                let name = machine.to_string();
                match goal.of(EntityKind::Machine, &name)? {
                    Some(goal) => common.reach(context, &goal).await,
                    None => common.wait(context, |status| Ok(machine_is_started(status, &name)?)).await,
                }
            }
            GoalCommand::Application(Application { name, units, wanted, goal, common }) => {
                let name = name.to_string();
                let holds = |status: &FullStatus| Ok(application_is(status, &name, units, &wanted)?);
                match goal.of(EntityKind::Application, &name)? {
                    Some(goal) => common.reach(context, &goal).await,
                    None => common.wait(context, holds).await,
                }
            }
            GoalCommand::Unit(Unit { name, wanted, goal, common }) => {
                let name = name.to_string();
                match goal.of(EntityKind::Unit, &name)? {
                    Some(goal) => common.reach(context, &goal).await,
                    None => common.wait(context, |status| Ok(unit_is(status, &name, &wanted)?)).await,
                }
            }
        }
    }
}

/// The reason why a goal is not reached.
enum Missing {
    /// A goal that may be reached later.
    Yet(String),
    /// A goal for an entity that existed and is gone.
    ForEver(String),
}

impl From<NotYet> for Missing {
    fn from(NotYet(reason): NotYet) -> Self {
        Self::Yet(reason)
    }
}

impl Common {
    /// Waits until a condition holds. The condition returns the part that it misses.
    async fn wait(
        &self,
        context: &Context,
        mut holds: impl FnMut(&FullStatus) -> Result<(), Missing>,
    ) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut missing = "the controller has not answered".to_owned();
        let waiting = async {
            let mut follow = StatusFollower::new(&model);
            loop {
                match holds(&follow.next().await?) {
                    Ok(()) => return Ok(()),
                    Err(Missing::ForEver(reason)) => return Err(Failure::new(reason)),
                    Err(Missing::Yet(reason)) => {
                        tracing::info!(reason, "not yet");
                        missing = reason;
                    }
                }
            }
        };
        match timeout(self.timeout, waiting).await {
            Ok(result) => result,
            Err(_) => {
                Err(Failure::new(format!("timed out after {} s: {missing}", self.timeout.as_secs_f64()))
                    .with_hint("`periapt status` and `periapt debug-log` say more"))
            }
        }
    }

    /// Waits until a query holds for an entity, and prints the fields that the query names.
    async fn reach(&self, context: &Context, goal: &Goal) -> Result<()> {
        let (mut found, mut reached) = (false, None);
        self.wait(context, |status| {
            let Some(entity) = goal.entity(status) else {
                return match found {
                    true => Err(Missing::ForEver(format!("{goal} removed"))),
                    false => Err(Missing::Yet(format!("{goal} does not exist"))),
                };
            };
            found = true;
            let summary = goal.query.summary(entity);
            if !goal.query.holds(entity) {
                return Err(Missing::Yet(format!("{goal} is {summary}")));
            }
            reached = Some((entity.life() == "alive", summary));
            Ok(())
        })
        .await?;
        match reached.filter(|_| goal.summary) {
            Some((true, summary)) => {
                context.say(format_args!("{goal} is running"));
                Sink::new(None, context.color)?.write(&to_yaml(&summary)?)
            }
            Some((false, _)) => {
                context.say(format_args!("{goal} is being removed"));
                Ok(())
            }
            None => Ok(()),
        }
    }
}
