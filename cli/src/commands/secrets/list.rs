//! `secrets`

use clap::Args;
use periapt_client::ClientError;
use periapt_host_api::ModelUuid;
use serde::{Serialize, Serializer};

use super::show::{OF_MODEL, Shown};
use crate::{
    context::{Context, Model, ModelArg},
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
    /// Only those of this application or unit, or of the model's users, by its UUID
    #[arg(long)]
    owner: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Secrets by their ids, in the order in which they were made.
struct Listing<'a>(Vec<(String, &'a Shown)>);

impl Serialize for Listing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, shown)| (id, shown)))
    }
}

impl Secrets {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut secrets = model.client().secrets(&model.selector).await?;
        // Ids are drawn at random; Juju's tell when they were made, and its listing is in order of them.
        secrets.sort_by_key(|secret| secret.created_at);
        let owner = match &self.owner {
            Some(owner) => Some(self.owner_in(&model, owner).await?),
            None => None,
        };
        let rows: Vec<_> = secrets
            .iter()
            .map(|secret| (secret, Shown::of(secret, false)))
            .filter(|(_, shown)| owner.as_ref().is_none_or(|owner| shown.owner == *owner))
            .collect();
        let shown = Listing(rows.iter().map(|(secret, shown)| (secret.id.to_string(), shown)).collect());
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
    /// An owner as the listing writes it.
    async fn owner_in(&self, model: &Model, owner: &str) -> Result<String, ClientError> {
        let Ok(uuid) = owner.parse::<ModelUuid>() else { return Ok(owner.to_owned()) };
        let this = model.client().model(&model.selector).await?.uuid == uuid;
        Ok(if this { OF_MODEL.to_owned() } else { owner.to_owned() })
    }
}
