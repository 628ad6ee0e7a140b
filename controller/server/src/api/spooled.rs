//! Uploads that are checked before they are kept: they are written to the disk first.

use std::time::Duration;

use axum::body::Body;
use periapt_blobs::Spooled;
use periapt_host_api::{Refusal, UserName};

use crate::{
    api::{blob::unavailable, body::PacedBody, connection::Peer},
    bounds::Upload,
    state::Contents,
};

/// The body of an upload, with its bounds.
pub(crate) struct UploadedBody {
    /// The body.
    pub(crate) content: Body,
    /// The most bytes.
    pub(crate) limit: u64,
    /// The longest time.
    pub(crate) within: Duration,
}

impl UploadedBody {
    /// Writes the body to the disk as it arrives. The upload is counted from its first bytes on.
    pub(crate) async fn spool(
        self,
        contents: &Contents,
        peer: Peer,
        user: &UserName,
    ) -> Result<(Spooled, Upload), Refusal> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut body = PacedBody::new(self.content, limit, self.within, contents.progress_within);
        let mut next = body.next().await?;
        let mut permit = contents.uploads.begin(peer.number, user)?;
        let mut spool = contents.blobs.spool().await.map_err(|error| unavailable(&error))?;
        while let Some(piece) = next {
            permit.hold(piece.len())?;
            spool.write(&piece).await.map_err(|error| unavailable(&error))?;
            next = body.next().await?;
        }
        let spooled = spool.end().await.map_err(|error| unavailable(&error))?;
        Ok((spooled, permit))
    }
}
