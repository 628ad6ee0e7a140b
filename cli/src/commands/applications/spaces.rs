//! `spaces`, `show-space`, `subnets`, `add-space`, `move-to-space`, `rename-space`, `remove-space`, `bind`.

mod shown;

use clap::Args;
use periapt_host_api::{ApplicationName, SpaceName, command::Command, network::Subnet};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::OutputArgs,
    parse::bindings,
};

/// List spaces and their subnets
///
/// The subnets of `alpha` are those of agents' hosts that are in no other space.
#[derive(Debug, Args)]
#[command(visible_alias = "list-spaces")]
pub(crate) struct Spaces {
    /// Only their names
    #[arg(long)]
    short: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// List subnets and the spaces that they are in
#[derive(Debug, Args)]
#[command(visible_alias = "list-subnets")]
pub(crate) struct Subnets {
    /// Only those of this space
    #[arg(long)]
    space: Option<SpaceName>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Make a space of some subnets
///
/// Subnets that are in another space leave it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt add-space internal 10.0.0.0/24 fd00::/64")]
pub(crate) struct AddSpace {
    /// The space's name
    name: SpaceName,
    /// Subnets that are in it
    #[arg(value_name = "CIDR")]
    subnets: Vec<Subnet>,
    #[command(flatten)]
    model: ModelArg,
}

/// Move subnets to a space
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt move-to-space internal 10.0.1.0/24\n  periapt move-to-space alpha 10.0.1.0/24"
)]
pub(crate) struct MoveToSpace {
    /// The space; alpha takes them out of all others
    space: SpaceName,
    /// The subnets
    #[arg(value_name = "CIDR", required = true)]
    subnets: Vec<Subnet>,
    /// Accepted for compatibility with Juju; there are no checks to skip
    #[arg(long, hide = true)]
    force: bool,
    #[command(flatten)]
    model: ModelArg,
}

/// Rename a space; bindings to it stay
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt rename-space internal backend")]
pub(crate) struct RenameSpace {
    /// The space
    name: SpaceName,
    /// Its new name
    #[arg(value_name = "NEW_NAME")]
    to: SpaceName,
    #[command(flatten)]
    model: ModelArg,
}

/// Show a space: its subnets, and which applications are bound to it
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt show-space internal")]
pub(crate) struct ShowSpace {
    /// The space
    name: SpaceName,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove a space that nothing is bound to
#[derive(Debug, Args)]
pub(crate) struct RemoveSpace {
    /// The space
    name: SpaceName,
    /// Accepted for compatibility with Juju; the command asks no question
    #[arg(short, long, hide = true)]
    yes: bool,
    #[command(flatten)]
    model: ModelArg,
}

/// Bind an application's endpoints to spaces
///
/// Units see their addresses in these spaces. Endpoints that are not named stay as they are.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt bind mysql internal\n  periapt bind mysql internal db=public")]
pub(crate) struct Bind {
    /// The application
    application: ApplicationName,
    /// ENDPOINT=SPACE, or a SPACE for all endpoints that are not named
    #[arg(value_name = "SPACE|ENDPOINT=SPACE", required = true)]
    bindings: Vec<String>,
    /// Accepted for compatibility with Juju; there are no checks to skip
    #[arg(long, hide = true)]
    force: bool,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Spaces {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let spaces = model.client().spaces(&model.selector).await?;
        match self.short {
            true => self.output.print(context.color, &shown::Names::of(&spaces), shown::Names::table),
            false => self.output.print(context.color, &shown::Listing::of(&spaces), shown::Listing::table),
        }
    }
}

impl Verb for Subnets {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let spaces = model.client().spaces(&model.selector).await?;
        let shown = shown::Subnets::of(&spaces, self.space.as_ref());
        // Juju has no table for it: the default format is YAML.
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

impl Verb for AddSpace {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { name, subnets, model } = self;
        context.model(&model)?.command(Command::AddSpace { name, subnets }).await.map(drop)
    }
}

impl Verb for MoveToSpace {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { space, subnets, model, .. } = self;
        context.model(&model)?.command(Command::MoveToSpace { space, subnets }).await.map(drop)
    }
}

impl Verb for RemoveSpace {
    async fn run(self, context: &Context) -> Result<()> {
        context.model(&self.model)?.command(Command::RemoveSpace { name: self.name }).await.map(drop)
    }
}

impl Verb for RenameSpace {
    async fn run(self, context: &Context) -> Result<()> {
        let Self { name, to, model } = self;
        context.model(&model)?.command(Command::RenameSpace { name, to }).await.map(drop)
    }
}

impl Verb for ShowSpace {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let spaces = model.client().spaces(&model.selector).await?.spaces;
        let subnets = spaces.get(&self.name).ok_or_else(|| {
            Failure::new(format!("space \"{}\" not found", self.name))
                .with_hint("`periapt spaces` lists them")
        })?;
        let status = model.client().status(&model.selector).await?;
        let shown = shown::Space::of(&self.name, subnets, &status);
        self.output.or_yaml().print(context.color, &shown, |_| String::new())
    }
}

impl Verb for Bind {
    async fn run(self, context: &Context) -> Result<()> {
        let (application, bindings) = (self.application, bindings::parse(&self.bindings)?);
        context.model(&self.model)?.command(Command::Bind { application, bindings }).await.map(drop)
    }
}
