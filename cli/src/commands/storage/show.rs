//! `show-storage`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{StorageId, status::StorageInfo};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Times},
};

/// Show details of storage
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

impl Verb for ShowStorage {
    async fn run(self, context: &Context) -> Result<()> {
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
