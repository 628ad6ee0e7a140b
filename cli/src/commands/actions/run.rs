//! `run`: an action on some units, and its results.

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::action::{ActionConcurrency, ActionReceiver, EnqueueOperation};

use super::{
    follow::{FollowArgs, FollowMode},
    parameters::{self, Reading},
};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
};

/// Run an action on units, and wait for its results
///
/// APPLICATION/leader is the application's present leader. Values are read as YAML, and a dotted key leads into
/// objects; parameters on the command line win over a file's. Messages of the action are shown as they come. Exit code
/// 1 means that a task's return code is not 0, or that the wait was too short. An action that fails itself ends with
/// its message, the status `failed` and exit code 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt run mysql/0 backup
  periapt run mysql/leader backup target.dir=/srv level=3 --wait 5m
  periapt run mysql/0 mysql/1 backup --params params.yaml --format json
  periapt run mysql/0 backup --background")]
pub(crate) struct Run {
    /// The units, the action, and its parameters
    #[arg(required = true, num_args = 1.., value_name = "UNIT... ACTION [KEY=VALUE...]")]
    arguments: Vec<String>,
    /// A YAML file of parameters; - for standard input
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
    /// Take values as text, not as YAML
    #[arg(long)]
    string_args: bool,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Run {
    async fn run(self, context: &Context) -> Result<()> {
        let (receivers, action, pairs) = split(&self.arguments)?;
        let reading = if self.string_args { Reading::Text } else { Reading::Yaml };
        let parameters = parameters::read(self.params.as_deref(), pairs, reading)?;
        let model = context.model(&self.model)?;
        let request = EnqueueOperation { action, receivers, parameters, turns: ActionConcurrency::default() };
        self.follow.carry_out(context, &model, request, FollowMode::Run).await
    }
}

/// Splits the arguments: units come first, then the action, then its parameters.
fn split(arguments: &[String]) -> Result<(Vec<ActionReceiver>, String, &[String])> {
    let count =
        arguments.iter().take_while(|argument| argument.contains('/') && !argument.contains('=')).count();
    let (units, rest) = arguments.split_at(count);
    if units.is_empty() {
        return Err(Failure::misused("no unit specified: `periapt run UNIT... ACTION [KEY=VALUE...]`"));
    }
    let receivers: Vec<ActionReceiver> =
        units.iter().map(|unit| unit.parse()).collect::<std::result::Result<_, _>>()?;
    match rest.split_first() {
        Some((action, pairs)) if !action.contains('=') => Ok((receivers, action.clone(), pairs)),
        _ => Err(Failure::misused("no action specified: `periapt actions APPLICATION` lists them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn units_come_before_the_action_and_parameters_after_it() {
        let arguments = words("mysql/0 mysql/leader backup a=b/c d=e");
        let (receivers, action, pairs) = split(&arguments).unwrap();
        assert_eq!(
            receivers.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["mysql/0", "mysql/leader"]
        );
        assert_eq!((action.as_str(), pairs), ("backup", words("a=b/c d=e").as_slice()));
    }

    #[test]
    fn each_mistake_is_told() {
        for (line, message) in [
            ("backup a=b", "no unit specified"),
            ("mysql/0 mysql/1", "no action specified"),
            ("mysql/0", "no action specified"),
            ("mysql/0 a=b", "no action specified"),
            ("mysql/x backup", "invalid unit name"),
        ] {
            let error = split(&words(line)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{line}: {error}");
        }
    }
}
