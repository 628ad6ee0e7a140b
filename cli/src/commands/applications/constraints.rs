//! `constraints`, `set-constraints`, `model-constraints`, `set-model-constraints`: where units are placed.

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command, constraints::Constraints as Asked};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::OutputArgs,
};

/// Show an application's constraints
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt constraints mysql")]
pub(crate) struct Constraints {
    /// The application
    application: ApplicationName,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Say on which agents an application's new units are placed, and the memory of its hooks
///
/// mem is the setting hook-memory-limit; tags are those that agents run with (^TAG: not with it), zones their
/// availability zones. What is not named is not asked for any more; units that are placed stay where they are. What
/// Juju's constraints ask of machines (root-disk, virt-type, more memory than a hook may have) is kept and has no effect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt set-constraints mysql mem=512M tags=ssd,^shared
  periapt set-constraints mysql zones=a,b
  periapt set-constraints mysql")]
pub(crate) struct SetConstraints {
    /// The application
    application: ApplicationName,
    /// Constraints KEY=VALUE; none: nothing is asked
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

/// Show the constraints of applications that have none of their own
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt model-constraints --format yaml")]
pub(crate) struct ModelConstraints {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Say on which agents new units are placed of applications that do not say it themselves
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt set-model-constraints tags=ssd\n  periapt set-model-constraints"
)]
pub(crate) struct SetModelConstraints {
    /// Constraints KEY=VALUE; none: nothing is asked
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Constraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let details = model.client().application(&model.selector, &self.application).await?;
        show(context, &self.output, &details.constraints)
    }
}

impl SetConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        let command =
            Command::SetConstraints { application: self.application, constraints: constraints.clone() };
        model.command(command).await?;
        tell_of_kept(context, &constraints);
        Ok(())
    }
}

impl ModelConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        show(context, &self.output, &model.client().model_constraints(&model.selector).await?)
    }
}

impl SetModelConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        model.command(Command::SetModelConstraints { constraints: constraints.clone() }).await?;
        tell_of_kept(context, &constraints);
        Ok(())
    }
}

/// As Juju shows them: in a line, or by key with mebibytes and lists; what is kept and has no effect comes last.
#[derive(Debug)]
pub(crate) struct Shown(Vec<(&'static str, Value)>);

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl Shown {
    pub(crate) fn of(constraints: &Asked) -> Self {
        let agents = &constraints.agents;
        let known = [
            ("cores", agents.cores.map(Value::from)),
            ("mem", constraints.asked_mem().map(|bytes| bytes.div_ceil(1 << 20).into())),
            ("tags", agents.tags.as_ref().map(|tags| tags.to_texts().into())),
            ("zones", agents.zones.as_ref().map(|zones| zones.iter().cloned().collect())),
        ];
        let known = known.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let kept = constraints.kept.others.iter().map(|(key, value)| (key.as_str(), key.show(value)));
        Self(known.chain(kept).collect())
    }
}

fn show(context: &Context, output: &OutputArgs, constraints: &Asked) -> Result<()> {
    output.print(context.color, &Shown::of(constraints), |_| format!("{constraints}\n"))
}

/// Tells a person, in one line, which constraints are kept and have no effect, and why.
pub(crate) fn tell_of_kept(context: &Context, constraints: &Asked) {
    let told = constraints.without_effect();
    if !told.is_empty() {
        context.say(format_args!(
            "constraints that no sandbox can meet are kept, and have no effect: {}",
            told.join(", ")
        ));
    }
}

/// Reads constraints as they are written on a command line.
pub(crate) fn read(texts: &[String]) -> Result<Asked> {
    Asked::parse(texts.iter().map(String::as_str)).map_err(|error| {
        Failure::new(error.to_string())
            .with_hint("cores=COUNT, mem=SIZE, tags=TAG,^TAG and zones=ZONE,... can be asked for")
    })
}
