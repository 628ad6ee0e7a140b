//! `secrets`

use std::collections::BTreeMap;

use clap::Args;

use super::show::Shown;
use crate::{
    context::{Context, ModelArg},
    error::Result,
    output::{OutputArgs, Table, to_the_second},
};

/// List a model's secrets, of its users and of its charms
#[derive(Debug, Args)]
#[command(
    visible_alias = "list-secrets",
    after_help = "Examples:\n  periapt secrets\n  periapt secrets --format json\n  periapt secrets --owner mysql"
)]
pub(crate) struct Secrets {
    /// Only those of this application or unit
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Secrets {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let secrets = model.client().secrets(&model.selector).await?;
        let rows: Vec<_> = secrets
            .iter()
            .map(|secret| (secret, Shown::of(secret, false)))
            .filter(|(_, shown)| self.owner.as_ref().is_none_or(|owner| shown.owner == *owner))
            .collect();
        let shown: BTreeMap<String, &Shown> =
            rows.iter().map(|(secret, shown)| (secret.id.to_string(), shown)).collect();
        self.output.print(context.color, &shown, |_| {
            let mut table =
                Table::new(["ID", "Name", "Owner", "Rotation", "Revision", "Last updated"]).right(4);
            for (secret, shown) in &rows {
                table.row([
                    secret.id.to_string().into(),
                    shown.name.clone().unwrap_or_else(|| "-".to_owned()).into(),
                    (&shown.owner).into(),
                    secret.rotate.as_str().into(),
                    secret.revision.0.into(),
                    to_the_second(secret.updated_at).into(),
                ]);
            }
            table.render()
        })
    }
}
