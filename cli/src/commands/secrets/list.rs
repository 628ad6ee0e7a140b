//! `secrets`

use std::str::FromStr;

use clap::Args;
use periapt_host_api::{
    ModelUuid,
    secret::{SecretOwner, SecretReader},
};
use serde::{Serialize, Serializer};

use super::shown::{Revisions, ShownSecret};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{OutputArgs, Table, to_the_second},
    parse::ParseError,
};

/// List a model's secrets, of its users and of its charms
#[derive(Debug, Args)]
#[command(
    visible_alias = "list-secrets",
    after_help = "Examples:\n  periapt secrets\n  periapt secrets --format json\n  periapt secrets --owner application-mysql"
)]
pub(crate) struct Secrets {
    /// Only those of this owner, by its tag: application-mysql, unit-mysql-0, or model-UUID for those of the model's
    /// users; without the tag's kind, mysql or mysql/0
    #[arg(long, value_name = "OWNER")]
    owner: Option<Owner>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// The owner whose secrets are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    Users(ModelUuid),
    Charm(SecretReader),
}

/// Parses a tag, as in Juju. A text without a tag's form is a name.
impl FromStr for Owner {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let right = "write application-NAME, unit-NAME-NUMBER or model-UUID";
        let wrong = || ParseError::Form(format!("invalid owner {text:?}: {right}"));
        Self::tagged(text).or_else(|| Self::named(text)).ok_or_else(wrong)
    }
}

impl Owner {
    fn tagged(text: &str) -> Option<Self> {
        match text.split_once('-')? {
            ("application", name) => name.parse().ok().map(SecretReader::Application).map(Self::Charm),
            ("unit", unit) => {
                let (application, number) = unit.rsplit_once('-')?;
                let unit = format!("{application}/{number}").parse().ok()?;
                Some(Self::Charm(SecretReader::Unit(unit)))
            }
            ("model", uuid) => uuid.parse().ok().map(Self::Users),
            _ => None,
        }
    }

    fn named(text: &str) -> Option<Self> {
        let uuid = text.parse().ok().map(Self::Users);
        uuid.or_else(|| text.parse().ok().map(Self::Charm))
    }

    /// Returns true if a secret of a model has this owner.
    fn has(&self, secret: &SecretOwner, model: ModelUuid) -> bool {
        match (self, secret) {
            (Self::Users(uuid), SecretOwner::Model) => *uuid == model,
            (Self::Charm(SecretReader::Application(name)), SecretOwner::Application(owner)) => name == owner,
            (Self::Charm(SecretReader::Unit(name)), SecretOwner::Unit(owner)) => name == owner,
            _ => false,
        }
    }
}

/// Secrets by their ids, in the order of their creation.
struct Listing<'a>(Vec<(String, &'a ShownSecret)>);

impl Serialize for Listing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, shown)| (id, shown)))
    }
}

impl Verb for Secrets {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut secrets = model.client().secrets(&model.selector).await?;
        // Ids are random. Juju's tell the order of creation, and its listing has that order.
        secrets.sort_by_key(|secret| secret.created_at);
        if let Some(owner) = &self.owner {
            let uuid = model.client().model(&model.selector).await?.uuid;
            secrets.retain(|secret| owner.has(&secret.owner, uuid));
        }
        let rows: Vec<_> =
            secrets.iter().map(|secret| (secret, ShownSecret::of(secret, Revisions::LeftOut))).collect();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_tag_or_a_name() {
        let uuid = "3f1a2d54-3b1c-4d52-8a34-0f6c0e1d2b3c";
        let model: ModelUuid = uuid.parse().unwrap();
        let application = |name: &str| SecretOwner::Application(name.parse().unwrap());
        let unit = |name: &str| SecretOwner::Unit(name.parse().unwrap());
        for (text, owner) in [
            ("application-my-sql", application("my-sql")),
            ("my-sql", application("my-sql")),
            ("unit-my-sql-10", unit("my-sql/10")),
            ("my-sql/10", unit("my-sql/10")),
            // The text is no tag, so it is a name.
            ("unit-tests", application("unit-tests")),
            (&format!("model-{uuid}"), SecretOwner::Model),
            (uuid, SecretOwner::Model),
        ] {
            let found: Owner = text.parse().unwrap();
            assert!(found.has(&owner, model), "{text}");
            assert!(!found.has(&application("other"), model), "{text}");
        }
        for text in ["", "My SQL", "mysql/", "unit-mysql-0x/", "<model>"] {
            let error = text.parse::<Owner>().unwrap_err();
            assert!(error.to_string().starts_with("invalid owner "), "{error}");
        }
        let other = "model-00000000-0000-4000-8000-000000000000".parse::<Owner>().unwrap();
        assert!(!other.has(&SecretOwner::Model, model));
    }
}
