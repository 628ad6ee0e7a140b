//! `status --watch`

use std::time::Duration;

use periapt_host_api::status::FullStatus;
use tokio::time::sleep;

use crate::{
    context::{Context, Model},
    error::Result,
    follow::status::StatusFollower,
    output::{Sink, Text},
};

/// Draws each status over the one before.
pub(super) async fn redraw(
    context: &Context,
    model: &Model,
    every: Duration,
    render: impl Fn(FullStatus) -> Result<Text>,
) -> Result<()> {
    let mut sink = Sink::new(None, context.color)?;
    let mut follow = StatusFollower::new(model);
    let mut drawn = None;
    loop {
        let text = render(follow.next().await?)?;
        // What has changed may be outside of what is shown.
        if drawn.as_ref() != Some(&text) {
            match (sink.is_watched(), &drawn) {
                (true, _) => sink.clear()?,
                (false, None) => {}
                (false, Some(_)) => sink.write("\n")?,
            }
            sink.write(&text)?;
            drawn = Some(text);
        }
        sleep(every).await;
    }
}
