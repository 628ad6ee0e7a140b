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

/// Draws each status over the last one.
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
        // A change may be outside of the shown part.
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
