//! Images that are kept: each layer once, for all images that have it.

use futures_util::StreamExt as _;
use periapt_blobs::{BlobError, Spooled};
use periapt_host_api::{
    Digest, Refusal,
    resource::{ArchiveLayer, ArchiveParts, check_layers, frame_ranges},
};
use periapt_model::{Input, Root, UploadedResource};

use crate::{
    api::blob::{self, unavailable, unfinished},
    check::CheckedArchive,
    state::{Contents, Submission},
    writer::Sender,
};

/// Stores an image's archive, then registers it with its parts. Parts that are there and intact are not stored again. A file
/// that no check has read has the parts with which it is registered, or none.
pub(super) async fn keep(
    contents: &Contents,
    submission: &Submission,
    who: Sender,
    archive: Spooled,
    checked: Option<CheckedArchive>,
) -> Result<(), Refusal> {
    let (image, layers) =
        checked.map_or_else(Default::default, |CheckedArchive { image, layers }| (Some(image), layers));
    let (digest, size) = (archive.digest(), archive.size());
    let layers = to_cut_out(&submission.durable.current().root, (&digest, size), layers);
    let keeping = contents.collector.lock_for_upload().await;
    contents.collector.note_request(&digest);
    let parts = match layers.is_empty() {
        true => {
            contents.blobs.put_spooled(archive).await.map_err(|error| unavailable(&error))?;
            None
        }
        false => Some(put_parts(contents, &archive, layers).await.map_err(|error| unfinished(&error))?),
    };
    drop(keeping);
    let blobs = parts.as_ref().map_or_else(|| vec![digest], |parts| parts.digests().into_iter().collect());
    let input = Input::UploadResource(UploadedResource { digest, size, image, parts });
    blob::register(contents, submission, who, &blobs, input).await
}

/// Returns the layers that are to be blobs of their own. An archive that is a blob already stays one, and one in parts keeps
/// its parts. A layer that is itself kept in parts stays within the frame.
fn to_cut_out(root: &Root, (digest, size): (&Digest, u64), layers: Vec<ArchiveLayer>) -> Vec<ArchiveLayer> {
    if let Some(known) = root.resource_content(digest) {
        return known.parts.as_ref().map(|parts| parts.layers.clone()).unwrap_or_default();
    }
    let is_in_parts =
        |digest: &Digest| root.resource_content(digest).is_some_and(|known| known.parts.is_some());
    let layers: Vec<_> = layers.into_iter().filter(|layer| !is_in_parts(&layer.digest)).collect();
    match check_layers(&layers, size) {
        Ok(()) => layers,
        Err(_) => Vec::new(),
    }
}

/// Stores the layers of an archive, and what is around them. The digest of each layer is checked.
async fn put_parts(
    contents: &Contents,
    archive: &Spooled,
    layers: Vec<ArchiveLayer>,
) -> Result<ArchiveParts, BlobError> {
    let mut frame = contents.blobs.spool().await?;
    for range in frame_ranges(&layers, archive.size()) {
        let mut pieces = archive.range(range)?;
        while let Some(piece) = pieces.next().await {
            frame.write(&piece?).await?;
        }
    }
    let frame = frame.end().await?;
    let digest = frame.digest();
    contents.collector.note_request(&digest);
    contents.blobs.put_spooled(frame).await?;
    for layer in &layers {
        contents.collector.note_request(&layer.digest);
        contents.blobs.put_part(archive, layer.range(), layer.digest).await?;
    }
    Ok(ArchiveParts { frame: digest, layers })
}
