//! The place of the blobs, when a controller starts: a file of its directory says where they were before.

use std::path::Path;

use futures_util::StreamExt as _;
use periapt_blobs::{BlobError, Blobs};
use periapt_host_api::StoreId;
use periapt_model::Root;
use periapt_transport::{Readers, read_file, write_file};

use super::BuildError;
use crate::state::BlobKind;

/// The file that names the place of shared blobs.
const PLACE: &str = "blobs-place";

/// Claims a shared store for the controller's own, and brings the blobs there that are in the local directory. Refuses a
/// start without the shared store that has the blobs.
pub(super) async fn settle(
    blobs: &Blobs,
    directory: Option<&Path>,
    store: StoreId,
    root: &Root,
) -> Result<(), BuildError> {
    let before = match directory {
        Some(directory) => read_file(&directory.join(PLACE), Readers::All).map_err(unusable)?,
        None => None,
    };
    let before = before.map(|text| text.trim().to_owned());
    let Some(place) = blobs.place() else {
        return before.map_or(Ok(()), |place| Err(BuildError::WithoutBlobs(place)));
    };
    blobs.claim(store).await?;
    let Some(directory) = directory.filter(|_| before.as_deref() != Some(&*place)) else { return Ok(()) };
    bring(blobs, &directory.join("blobs"), root).await?;
    Ok(write_file(&directory.join(PLACE), format!("{place}\n"), Readers::All).map_err(unusable)?)
}

/// Brings the registered blobs of a local directory into the shared store.
async fn bring(blobs: &Blobs, directory: &Path, root: &Root) -> Result<(), BuildError> {
    let mut missing = Vec::new();
    for kind in BlobKind::ALL {
        let shared = kind.among(blobs);
        let stored = shared.digests().await?;
        let lacking: Vec<_> = kind.known(root).filter(|digest| !stored.contains(digest)).collect();
        if lacking.is_empty() {
            continue;
        }
        let local = kind.among(&Blobs::local(directory)?);
        for digest in lacking {
            let Some(mut blob) = local.get(&digest, None).await? else {
                missing.push(digest);
                continue;
            };
            let mut incoming = shared.begin(digest).await?;
            while let Some(piece) = blob.content.next().await {
                incoming.write(piece?).await?;
            }
            incoming.finish().await?;
            tracing::info!(kind = kind.as_str(), digest = %digest.short(), "a blob was brought into the shared store");
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(first) => Err(BuildError::MissingBlobs {
            count: missing.len(),
            first: *first,
            place: blobs.place().as_deref().unwrap_or_default().to_owned(),
            directory: directory.to_owned(),
        }),
    }
}

fn unusable(error: periapt_transport::KeyFileError) -> BlobError {
    BlobError::Directory { directory: PLACE.to_owned(), source: std::io::Error::other(error) }
}
