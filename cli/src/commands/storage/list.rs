//! `storage`, `show-storage`, `add-storage`, `attach-storage`, `detach-storage`, `remove-storage`.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    StorageId, StorageName, UnitName,
    command::{Answer, Command},
    status::StorageInfo,
    storage::{DEFAULT_POOL, StorageDirective, StorageDirectives, StorageEnd},
};

use crate::{
    commands::applications::units::said,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{Format, OutputArgs, Table, Times},
    parse::removal::{ForceArgs, report},
    print::storage::{self as shown, tabular},
    prompt::PromptArg,
};

/// List a model's storage
#[derive(Debug, Args)]
pub(crate) struct Storage {
    /// List only the filesystems that storage lies in
    #[arg(long)]
    filesystem: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// List where storage can come from
#[derive(Debug, Args)]
pub(crate) struct StoragePools {
    /// Only pools of these names
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    name: Vec<String>,
    /// Only pools of these providers
    #[arg(long, value_name = "PROVIDER,...", value_delimiter = ',')]
    provider: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Show all that is known of storage
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt show-storage pgdata/0")]
pub(crate) struct ShowStorage {
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Give a unit more storage
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-storage postgresql/0 logs\n  periapt add-storage postgresql/0 logs=2,100M"
)]
pub(crate) struct AddStorage {
    /// The unit
    unit: UnitName,
    /// NAME, or `NAME=[POOL,][COUNT,][SIZE]`; one instance unless a count is given
    #[arg(required = true, value_name = "NAME[=DIRECTIVE]", value_parser = directive_or_name)]
    storage: Vec<(StorageName, StorageDirective)>,
    #[command(flatten)]
    model: ModelArg,
}

/// Attach detached storage to a unit of the agent that it lies on
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt attach-storage postgresql/1 pgdata/0")]
pub(crate) struct AttachStorage {
    /// The unit
    unit: UnitName,
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    #[command(flatten)]
    model: ModelArg,
}

/// Take storage from its unit; it stays in the model, with all that lies in it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt detach-storage logs/1\n  periapt detach-storage pgdata/0 --force"
)]
pub(crate) struct DetachStorage {
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove storage, with all that lies in it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt remove-storage pgdata/0\n  periapt remove-storage pgdata/0 --no-destroy"
)]
pub(crate) struct RemoveStorage {
    /// The instances
    #[arg(required = true)]
    storage: Vec<StorageId>,
    /// Only forget it: its files stay on the agent's disk
    #[arg(long)]
    no_destroy: bool,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    model: ModelArg,
}

impl Storage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut storage = model.client().storage(&model.selector).await?;
        if self.filesystem {
            storage.storage.clear();
        }
        if storage.storage.is_empty()
            && storage.filesystems.is_empty()
            && self.output.format == Format::Tabular
        {
            context.say(format_args!("No storage to display."));
            return Ok(());
        }
        let tree = Times::ForPeople.written(&storage)?;
        self.output.print(context.color, &tree, |_| match self.filesystem {
            true => shown::filesystems(&storage).render(),
            false => tabular(&storage).render(),
        })
    }
}

impl StoragePools {
    /// There is one: the disks of agents.
    pub(crate) fn run(self, context: &Context) -> Result<()> {
        context.model(&self.model)?;
        let mut pools = BTreeMap::from([(DEFAULT_POOL, BTreeMap::from([("provider", DEFAULT_POOL)]))]);
        let wanted = |only: &[String], name: &str| only.is_empty() || only.iter().any(|it| it == name);
        pools.retain(|name, _| wanted(&self.name, name) && wanted(&self.provider, DEFAULT_POOL));
        self.output.print(context.color, &pools, |pools| {
            let mut table = Table::new(["Name", "Provider", "Attributes"]);
            for (name, attributes) in pools {
                table.row([
                    (*name).into(),
                    attributes.get("provider").copied().unwrap_or_default().into(),
                    "".into(),
                ]);
            }
            table.render()
        })
    }
}

impl ShowStorage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut known = model.client().storage(&model.selector).await?.storage;
        let mut shown: BTreeMap<String, StorageInfo> = BTreeMap::new();
        for id in self.storage.iter().map(ToString::to_string) {
            let info = known.remove(&id).or_else(|| shown.get(&id).cloned());
            let info = info.ok_or_else(|| Failure::new(format!("storage \"{id}\" not found")))?;
            shown.insert(id, info);
        }
        let tree = Times::ForPeople.written(&shown)?;
        self.output.or_yaml().print(context.color, &tree, |_| String::new())
    }
}

impl AddStorage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let storage = directives(self.storage)?;
        let command = Command::AddStorage { unit: self.unit.clone(), storage };
        let added = match model.command(command).await? {
            Answer::Storage { storage } => storage,
            other => return Err(Failure::unexpected(&other)),
        };
        for id in added {
            context.say(format_args!("added storage {id} to {}", self.unit));
        }
        Ok(())
    }
}

impl AttachStorage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let attach = |storage: &StorageId| Command::AttachStorage {
            unit: self.unit.clone(),
            storage: storage.clone(),
        };
        let commands = self.storage.iter().map(attach).collect();
        model
            .commands(commands, |index, _| {
                if let Some(id) = self.storage.get(index) {
                    context.say(format_args!("attaching {id} to {}", self.unit));
                }
            })
            .await
    }
}

impl DetachStorage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let force = self.force.force();
        let detach = |storage: &StorageId| Command::DetachStorage { storage: storage.clone(), force };
        let commands = self.storage.iter().map(detach).collect();
        model
            .commands(commands, |index, answer| {
                let Some(id) = self.storage.get(index) else { return };
                match answer {
                    Answer::Removal { gone: true, .. } => report(context, &format!("storage {id}"), &answer),
                    _ => context.say(format_args!("detaching {id}")),
                }
            })
            .await
    }
}

impl RemoveStorage {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let names: Vec<_> = self.storage.iter().map(ToString::to_string).collect();
        let end = match self.no_destroy {
            true => StorageEnd::Release,
            false => {
                self.prompt.confirm(&format!(
                    "This command will remove storage {} with all that lies in it.",
                    names.join(", ")
                ))?;
                StorageEnd::Destroy
            }
        };
        let force = self.force.force();
        let remove = |storage: &StorageId| Command::RemoveStorage { storage: storage.clone(), end, force };
        let commands = self.storage.iter().map(remove).collect();
        model
            .commands(commands, |index, answer| said(context, "storage", &self.storage, index, &answer))
            .await
    }
}

/// `NAME=DIRECTIVE`.
pub(crate) fn directive(text: &str) -> std::result::Result<(StorageName, StorageDirective), String> {
    let (name, directive) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is no storage directive: write NAME=DIRECTIVE"))?;
    let name = StorageName::new(name).map_err(|error| error.to_string())?;
    let directive =
        directive.parse().map_err(|error: periapt_host_api::storage::DirectiveError| error.to_string())?;
    Ok((name, directive))
}

/// `NAME`, or `NAME=DIRECTIVE`.
fn directive_or_name(text: &str) -> std::result::Result<(StorageName, StorageDirective), String> {
    match text.contains('=') {
        true => directive(text),
        false => {
            let name = StorageName::new(text).map_err(|error| error.to_string())?;
            Ok((name, StorageDirective::default()))
        }
    }
}

/// All directives, each storage once.
pub(crate) fn directives(given: Vec<(StorageName, StorageDirective)>) -> Result<StorageDirectives> {
    let mut directives = StorageDirectives::new();
    for (name, directive) in given {
        if directives.contains_key(&name) {
            return Err(Failure::new(format!("storage \"{name}\" is given twice")));
        }
        directives.insert(name, directive);
    }
    Ok(directives)
}
