//! `storage`

use clap::Args;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Format, OutputArgs, Times},
    print::storage::{filesystems, tabular},
};

/// List a model's storage
#[derive(Debug, Args)]
#[command(visible_alias = "list-storage")]
pub(crate) struct Storage {
    /// List only the filesystems that storage lies in
    #[arg(long)]
    filesystem: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Storage {
    async fn run(self, context: &Context) -> Result<()> {
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
            true => filesystems(&storage).render(),
            false => tabular(&storage).render(),
        })
    }
}
