//! The wait for destroyed models to be gone.

use std::{collections::BTreeMap, time::Duration};

use periapt_client::{Client, ClientError};
use periapt_host_api::{
    ErrorCode, ModelUuid,
    api::ModelSelector,
    command::{Force, ModelSummary},
};
use tokio::time::{Instant, sleep};

use super::removal::{NextStep, Waiting, still_there};
use crate::{
    context::{Context, models_by_name},
    error::{Failure, Result},
};

/// The time before the command names the reason of a wait. Most removals end sooner, and need no message.
const SILENT: Duration = Duration::from_millis(500);

/// The destroyed models that a command waits for.
pub(crate) struct Destroyed<'a> {
    pub(crate) client: &'a Client,
    /// The model; none means all of the controller's.
    pub(crate) model: Option<ModelUuid>,
    /// The forced removal after a time; none waits without force.
    pub(crate) force: Option<Force>,
    /// The command that would force the removal.
    pub(crate) forcing: String,
    /// The longest wait, beside the time that force takes.
    pub(crate) give_up_after: Duration,
}

impl Destroyed<'_> {
    /// Waits until they are gone, and names the reasons of the wait. It polls, because there is no stream of
    /// all models' lives.
    pub(crate) async fn gone(&self, context: &Context) -> Result<()> {
        let began = Instant::now();
        let longest = Duration::from_secs(self.force.map_or(0, |force| force.max_wait.into()));
        let deadline = began + self.give_up_after + longest;
        let mut told = BTreeMap::new();
        let mut pause = Duration::from_millis(20);
        loop {
            let left = self.left().await?;
            let Some(first) = left.first() else { return Ok(()) };
            if Instant::now() + pause > deadline {
                let selector = ModelSelector::Uuid(first.uuid);
                let waits = self.client.status(&selector).await.map(|status| still_there(&status));
                return Err(Failure::new(format!(
                    "model {} is not gone yet: {} unit(s), {} application(s) left{}",
                    first.name,
                    first.units,
                    first.applications,
                    waits.unwrap_or_default()
                ))
                .with_hint(format!(
                    "its removal continues; `periapt resolved -m {} UNIT` runs a failed hook again; `{}` does not wait \
                     for units for ever",
                    first.name, self.forcing
                )));
            }
            if began.elapsed() > SILENT {
                for model in &left {
                    let told = told.entry(model.uuid).or_insert_with(|| Waiting::new(model.name.as_str()));
                    self.report(context, model, told).await;
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    async fn left(&self) -> Result<Vec<ModelSummary>> {
        match self.model {
            None => models_by_name(self.client).await,
            Some(uuid) => match self.client.model(&ModelSelector::Uuid(uuid)).await {
                Ok(summary) => Ok(vec![summary]),
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            },
        }
    }

    async fn report(&self, context: &Context, model: &ModelSummary, told: &mut Waiting) {
        // The model may be gone meanwhile; the next poll finds any other error.
        let Ok(status) = self.client.status(&ModelSelector::Uuid(model.uuid)).await else { return };
        let next_step = if self.force.is_some() { NextStep::Forced } else { NextStep::Force(&self.forcing) };
        told.report(context, &status, next_step);
    }
}
