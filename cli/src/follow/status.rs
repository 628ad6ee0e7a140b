//! A model's statuses as they come, across restarts of the controller.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use periapt_client::{ClientError, NdJson, RequestOutcome};
use periapt_host_api::status::FullStatus;
use tokio::time::sleep;

use crate::{context::Model, error::Result, output::note};

/// The first pause between attempts to reach the controller; it grows up to...
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// ... this one.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A follower of a model's statuses: the present one, then each that differs. It skips those that
/// nobody read in time.
pub(crate) struct StatusFollower<'a> {
    model: &'a Model,
    stream: Option<NdJson<FullStatus>>,
    pause: Duration,
    lost: bool,
}

impl<'a> StatusFollower<'a> {
    /// Creates a follower, which connects at the first `next`.
    pub(crate) fn new(model: &'a Model) -> Self {
        Self { model, stream: None, pause: FIRST_PAUSE, lost: false }
    }

    /// Returns the newest status. It waits without a bound for a new one, and for an unreachable
    /// controller.
    pub(crate) async fn next(&mut self) -> Result<FullStatus> {
        loop {
            match self.attempt().await {
                Ok(status) => {
                    if std::mem::take(&mut self.lost) {
                        note("the controller is back");
                    }
                    self.pause = FIRST_PAUSE;
                    return Ok(status);
                }
                Err(error) if error.is_temporary() => {
                    self.stream = None;
                    if !std::mem::replace(&mut self.lost, true) {
                        note(format_args!("{error}\nwaiting until it does"));
                    }
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn attempt(&mut self) -> Result<FullStatus, ClientError> {
        let client = self.model.client();
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(client.watch_status(&self.model.selector).await?),
        };
        let Some(mut newest) = stream.next().await else {
            // A stopping controller ends its streams in good order.
            self.stream = None;
            return Err(ClientError::Unreachable {
                url: client.urls().into_iter().next().unwrap_or_default(),
                reason: "the stream has ended".to_owned(),
                outcome: RequestOutcome::NothingHappened,
            });
        };
        while let Some(Some(next)) = stream.next().now_or_never() {
            newest = next.or(newest);
        }
        newest
    }
}
