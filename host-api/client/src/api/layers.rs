//! Images for agents: what an agent has of their layers is not fetched again.

use std::{fs::File, io::SeekFrom, ops::Range};

use http::{HeaderValue, header};
use periapt_host_api::{
    AgentName, ModelUuid, UnitName,
    resource::{ArchiveLayer, ContentLayers, ResourceKey, frame_ranges},
};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::{
    blob::{Download, local},
    resource::unit_resource_path,
};
use crate::{Client, PartialFile, Result, request::Received};

/// The bytes of a layer that are copied at a time.
const PIECE: usize = 256 << 10;

/// A layer that an agent has.
#[derive(Debug)]
pub struct KnownLayer {
    /// The place where the wanted archive has it.
    pub place: ArchiveLayer,
    /// A file that has it.
    pub file: File,
    /// The number of bytes before it in that file.
    pub from: u64,
}

impl Client {
    /// Returns the layers in the content of a resource of a unit's application.
    pub async fn unit_resource_layers(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
    ) -> Result<ContentLayers> {
        self.get(format!("{}/layers", unit_resource_path(agent, model, unit, key))).value().await
    }

    /// Fetches what a file lacks of the content of a resource of `size` bytes, but for layers that are known, which are
    /// copied. Known layers are in the order of the content, and do not overlap. Returns true if the whole has its digest:
    /// else a known layer is damaged, and the file is empty. After an error, the file keeps what has arrived if a later call
    /// may fetch the rest.
    pub async fn fetch_unit_resource_beside(
        &self,
        (agent, model): (&AgentName, &ModelUuid),
        unit: &UnitName,
        key: &ResourceKey,
        (size, known): (u64, Vec<KnownLayer>),
        file: &mut PartialFile,
    ) -> Result<bool> {
        let path = unit_resource_path(agent, model, unit, key);
        let fetched = async {
            file.settle().await.map_err(local)?;
            self.fetch_beside(&path, (size, known), file).await?;
            let is_whole = file.digest() == key.digest;
            if !is_whole {
                file.clear().await.map_err(local)?;
            }
            Ok(is_whole)
        };
        let fetched: Result<bool> = fetched.await;
        if fetched.as_ref().is_err_and(|error| !error.is_temporary()) {
            file.forget();
        }
        fetched
    }

    /// Adds the content to a file, in its order, from known layers and the controller. Ends early at a layer that is too
    /// short.
    async fn fetch_beside(
        &self,
        path: &str,
        (size, known): (u64, Vec<KnownLayer>),
        file: &mut PartialFile,
    ) -> Result<()> {
        let places: Vec<ArchiveLayer> = known.iter().map(|layer| layer.place).collect();
        let mut fetched = frame_ranges(&places, size).into_iter().peekable();
        for layer in known {
            let place = layer.place;
            if let Some(range) = fetched.next_if(|range| range.start < place.at) {
                self.fetch_range(path, range, file).await?;
            }
            copy(layer, file).await?;
            if file.length() < place.range().end {
                return Ok(());
            }
        }
        for range in fetched {
            self.fetch_range(path, range, file).await?;
        }
        Ok(())
    }

    /// Fetches what a file lacks of a range.
    async fn fetch_range(&self, path: &str, range: Range<u64>, file: &mut PartialFile) -> Result<()> {
        let start = range.start.max(file.length());
        let Some(mut left) = range.end.checked_sub(start).filter(|left| *left > 0) else { return Ok(()) };
        let wanted = format!("bytes={start}-{}", range.end.saturating_sub(1));
        let wanted = HeaderValue::try_from(wanted).map_err(|error| self.protocol(error.to_string()))?;
        let Received { peer, response, .. } = self.get(path).header(header::RANGE, wanted).response().await?;
        let mut download = Download { peer, body: response.into_body(), what: "resource" };
        loop {
            let piece = match download.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                // The connection broke behind the last byte.
                Err(_) if left == 0 => break,
                Err(error) => return Err(error),
            };
            left =
                left.checked_sub(piece.len() as u64).ok_or_else(|| self.protocol("a range is too long"))?;
            file.append(&piece).await.map_err(local)?;
        }
        match left {
            0 => Ok(()),
            _ => Err(self.protocol(format!("{left} bytes of a range are missing"))),
        }
    }
}

/// Copies what a file lacks of a layer from the file that has it, or as much as that one has.
async fn copy(KnownLayer { place, file: source, from }: KnownLayer, file: &mut PartialFile) -> Result<()> {
    let had = file.length().saturating_sub(place.at);
    let Some(left) = place.size.checked_sub(had) else { return Ok(()) };
    let mut source = tokio::fs::File::from_std(source);
    source.seek(SeekFrom::Start(from.saturating_add(had))).await.map_err(local)?;
    let (mut content, mut piece) = (source.take(left), vec![0; PIECE]);
    loop {
        let read = content.read(&mut piece).await.map_err(local)?;
        if read == 0 {
            return Ok(());
        }
        file.append(piece.get(..read).unwrap_or_default()).await.map_err(local)?;
    }
}
