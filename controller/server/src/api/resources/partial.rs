//! Uploads of images that leave out layers that the controller has.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use periapt_blobs::{Spool, Spooled};
use periapt_host_api::{
    Refusal, excerpt,
    resource::{ArchiveLayer, MAX_PARTIAL_HEAD, PartialUpload, check_layers},
};
use periapt_model::may_know_resource;
use ring::digest::{Context, SHA256};

use crate::{
    api::{
        blob::unavailable, body::PacedBody, caller::RequestCaller, connection::Peer, spooled::UploadedBody,
    },
    bounds::Upload,
    state::{BlobKind, Contents, Durable},
};

/// An archive that is put together on the disk: of what arrives, and of layers that are there.
struct PartialArchive<'a> {
    contents: &'a Contents,
    spool: Spool,
    permit: Upload,
    /// The layers that were left out and are yet to come, in the order of the archive.
    left_out: VecDeque<ArchiveLayer>,
    /// The bytes of the archive so far.
    at: u64,
    /// The most bytes of an archive.
    limit: u64,
}

/// Writes an archive to the disk, of the body and of the layers that the body's first line names. The sender must be one who
/// may use them.
pub(super) async fn spool(
    UploadedBody { content, limit, within }: UploadedBody,
    contents: &Contents,
    durable: &Durable,
    peer: Peer,
    who: &RequestCaller,
) -> Result<(Spooled, Upload), Refusal> {
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut body = PacedBody::new(content, most, within, contents.progress_within);
    let first = body.next().await?;
    let permit = contents.uploads.begin(peer.number, who.user()?)?;
    let (PartialUpload { left_out }, mut piece) = head(&mut body, first).await?;
    check_layers(&left_out, limit).map_err(|broken| Refusal::bad_request(broken.to_string()))?;
    for layer in &left_out {
        check(contents, durable, who, layer).await?;
    }
    let spool = contents.blobs.spool().await.map_err(|error| unavailable(&error))?;
    let mut archive = PartialArchive { contents, spool, permit, left_out: left_out.into(), at: 0, limit };
    loop {
        archive.add(piece).await?;
        match body.next().await? {
            Some(next) => piece = next,
            None => return archive.end().await,
        }
    }
}

/// Reads the first line of a body. Returns it with the bytes behind it that have arrived.
async fn head(body: &mut PacedBody, first: Option<Bytes>) -> Result<(PartialUpload, Bytes), Refusal> {
    let (mut line, mut next) = (BytesMut::new(), first);
    loop {
        let Some(mut piece) = next else {
            return Err(Refusal::bad_request("the upload ends within its first line"));
        };
        let end = piece.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&piece.split_to(end.unwrap_or(piece.len())));
        if line.len() > MAX_PARTIAL_HEAD {
            let text = format!("the first line of the upload is longer than {MAX_PARTIAL_HEAD} bytes");
            return Err(Refusal::bad_request(text));
        }
        if end.is_some() {
            let head = serde_json::from_slice(&line).map_err(|error| {
                let told = excerpt::of_message(&error.to_string());
                Refusal::bad_request(format!("invalid first line of the upload: {told}"))
            })?;
            return Ok((head, piece.slice(1..)));
        }
        next = body.next().await?;
    }
}

/// Refuses a layer that is not here, or that the sender may not use. Both get the same answer.
async fn check(
    contents: &Contents,
    durable: &Durable,
    who: &RequestCaller,
    layer: &ArchiveLayer,
) -> Result<(), Refusal> {
    let may_use = {
        let root = &durable.current().root;
        may_know_resource(root, &who.caller, &layer.digest, &|state| who.sees(root, state))
            && BlobKind::Resource.is_blob(root, &layer.digest)
    };
    if !may_use {
        return Err(lacking(layer));
    }
    contents.collector.note_request(&layer.digest);
    contents.copies.obtain(contents, &layer.digest).await;
    let size = contents.blobs.readable_size(&layer.digest).await.map_err(|error| unavailable(&error))?;
    match size == Some(layer.size) {
        true => Ok(()),
        false => Err(lacking(layer)),
    }
}

/// Returns the refusal of an upload that leaves out a layer that cannot be used.
fn lacking(layer: &ArchiveLayer) -> Refusal {
    Refusal::not_found(format!(
        "layer {} of {} bytes, which the upload leaves out, is missing or damaged here: send the whole image",
        layer.digest, layer.size
    ))
}

impl PartialArchive<'_> {
    /// Adds what has arrived, and each layer whose place comes.
    async fn add(&mut self, mut piece: Bytes) -> Result<(), Refusal> {
        loop {
            while let Some(layer) = self.left_out.front().copied().filter(|layer| layer.at == self.at) {
                self.left_out.pop_front();
                self.copy(&layer).await?;
            }
            if piece.is_empty() {
                return Ok(());
            }
            // The layers are in order, and do not overlap.
            let before_next = self.left_out.front().map_or(u64::MAX, |layer| layer.at - self.at);
            let most = usize::try_from(before_next).unwrap_or(usize::MAX).min(piece.len());
            self.write(&piece.split_to(most)).await?;
        }
    }

    /// Copies a layer that is here.
    async fn copy(&mut self, layer: &ArchiveLayer) -> Result<(), Refusal> {
        let blob = self.contents.blobs.get(&layer.digest, None).await.map_err(|error| unavailable(&error))?;
        let mut content = blob.ok_or_else(|| lacking(layer))?.content;
        let (mut hasher, end) = (Context::new(&SHA256), layer.range().end);
        while let Some(piece) = content.next().await {
            let piece = piece.map_err(|error| unavailable(&error))?;
            hasher.update(&piece);
            self.write(&piece).await?;
        }
        match self.at == end && hasher.finish().as_ref() == layer.digest.as_bytes() {
            true => Ok(()),
            false => Err(lacking(layer)),
        }
    }

    async fn write(&mut self, piece: &Bytes) -> Result<(), Refusal> {
        self.at += piece.len() as u64;
        if self.at > self.limit {
            let text = format!("the image's archive is larger than {} bytes", self.limit);
            return Err(Refusal::bad_request(text));
        }
        self.permit.hold(piece.len())?;
        self.spool.write(piece).await.map_err(|error| unavailable(&error))
    }

    async fn end(self) -> Result<(Spooled, Upload), Refusal> {
        if let Some(layer) = self.left_out.front() {
            let text = format!("the upload ends at {}, before the layer at {}", self.at, layer.at);
            return Err(Refusal::bad_request(text));
        }
        let spooled = self.spool.end().await.map_err(|error| unavailable(&error))?;
        Ok((spooled, self.permit))
    }
}
