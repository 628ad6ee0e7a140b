//! The present names at the controller.

use std::{collections::BTreeSet, time::Duration};

use periapt_host_api::ApplicationName;
use tokio::time::timeout;

use super::{Kind, Words};
use crate::{
    context::{Context, Controller, Environment, Model, Used},
    data::{ClientData, DataDir},
    error::{Explain as _, Failure, Result},
    output::{ColorChoice, Verbosity},
};

/// The longest wait for a completion; users type on meanwhile.
const TIMEOUT: Duration = Duration::from_millis(1500);

/// Returns all names of these kinds, for the model or application that the line names. Fails if the controller
/// does not answer in time.
pub(super) fn names(kinds: &[Kind], words: &Words) -> Result<Vec<String>> {
    let context = Context {
        data: DataDir::from_environment()?,
        environment: Environment::of_process(),
        color: ColorChoice::Never,
        verbosity: Verbosity::Quiet,
        used: Used::default(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.explain(|| "cannot start".to_owned())?;
    runtime.block_on(async {
        let mut names = Vec::new();
        for kind in kinds {
            let found = timeout(TIMEOUT, of_kind(*kind, &context, words)).await;
            names.extend(found.map_err(|_| Failure::new("the controller takes too long"))??);
        }
        Ok(names)
    })
}

async fn of_kind(kind: Kind, context: &Context, words: &Words) -> Result<BTreeSet<String>> {
    match kind {
        Kind::Controller => {
            Ok(ClientData::read(&context.data)?.controllers.keys().map(ToString::to_string).collect())
        }
        Kind::Model => {
            let models = controller(context, words)?.client.models().await?;
            Ok(models.into_iter().map(|model| model.name.to_string()).collect())
        }
        _ => in_model(kind, &context.model(&words.model())?, words).await,
    }
}

fn controller(context: &Context, words: &Words) -> Result<Controller> {
    let named = words.controller().and_then(|name| name.parse().ok());
    context.controller(named.as_ref())
}

async fn in_model(kind: Kind, model: &Model, words: &Words) -> Result<BTreeSet<String>> {
    let (client, selector) = (model.client(), &model.selector);
    Ok(match kind {
        Kind::Application => {
            let status = client.status(selector).await?;
            status.applications.into_keys().chain(status.remote_applications.into_keys()).collect()
        }
        Kind::Unit => client.status(selector).await?.units().map(|unit| unit.name.to_owned()).collect(),
        Kind::Action => {
            let unit = words.unit().and_then(|unit| unit.split_once('/'));
            let Some(Ok(application)) = unit.map(|(name, _)| ApplicationName::new(name)) else {
                return Ok(BTreeSet::new());
            };
            client.actions(selector, &application).await?.into_keys().collect()
        }
        Kind::Machine => client.machines(selector).await?.into_keys().collect(),
        Kind::Storage => client.storage(selector).await?.storage.into_keys().collect(),
        Kind::Secret => {
            let secrets = client.secrets(selector).await?;
            let name = |secret: periapt_host_api::api::SecretDetails| {
                secret.label.unwrap_or_else(|| secret.id.to_string())
            };
            secrets.into_iter().map(name).collect()
        }
        Kind::Space => {
            client.spaces(selector).await?.spaces.into_keys().map(|name| name.to_string()).collect()
        }
        Kind::Offer => client.status(selector).await?.offers.into_keys().collect(),
        Kind::Model | Kind::Controller => BTreeSet::new(),
    })
}
