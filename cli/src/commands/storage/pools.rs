//! `storage-pools`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::storage::DEFAULT_POOL;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{OutputArgs, Table},
};

/// List storage pools
#[derive(Debug, Args)]
#[command(visible_alias = "list-storage-pools")]
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

impl Verb for StoragePools {
    /// Prints the one pool: the disks of agents.
    async fn run(self, context: &Context) -> Result<()> {
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
