//! Images for agents: what an agent has of their layers is not fetched again.

use std::{
    fs::File,
    io::{self, SeekFrom},
    ops::Range,
};

use http::{HeaderValue, header};
use periapt_host_api::{
    AgentName, Digest, ModelUuid, UnitName,
    resource::{ArchiveLayer, ContentLayers, ResourceKey, frame_ranges},
};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};

use super::{blob::Download, resource::unit_resource_path};
use crate::{Client, ClientError, Result, request::Received};

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

/// A writer whose content is hashed.
struct HashedWriter<'a, W> {
    writer: &'a mut W,
    hasher: Sha256,
}

impl<W: AsyncWrite + Unpin + Send> HashedWriter<'_, W> {
    async fn write(&mut self, piece: &[u8]) -> Result<()> {
        self.hasher.update(piece);
        self.writer.write_all(piece).await.map_err(|error| ClientError::Local(error.to_string()))
    }
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

    /// Fetches the content of a resource of `size` bytes into a writer, but for layers that are known, which are copied.
    /// Known layers are in the order of the content, and do not overlap. Returns true if the whole has its digest: else a
    /// known layer is damaged. After an error, and then, the caller must discard what was written.
    pub async fn fetch_unit_resource_beside(
        &self,
        (agent, model): (&AgentName, &ModelUuid),
        unit: &UnitName,
        key: &ResourceKey,
        (size, known): (u64, Vec<KnownLayer>),
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<bool> {
        let path = unit_resource_path(agent, model, unit, key);
        let mut target = HashedWriter { writer, hasher: Sha256::new() };
        let places: Vec<ArchiveLayer> = known.iter().map(|layer| layer.place).collect();
        let mut fetched = frame_ranges(&places, size).into_iter().peekable();
        for layer in known {
            if let Some(range) = fetched.next_if(|range| range.start < layer.place.at) {
                self.fetch_range(&path, &range, &mut target).await?;
            }
            copy(layer, &mut target).await?;
        }
        for range in fetched {
            self.fetch_range(&path, &range, &mut target).await?;
        }
        let HashedWriter { writer, hasher } = target;
        writer.flush().await.map_err(|error| ClientError::Local(error.to_string()))?;
        Ok(Digest::from_bytes(hasher.finalize().into()) == key.digest)
    }

    async fn fetch_range<W: AsyncWrite + Unpin + Send>(
        &self,
        path: &str,
        range: &Range<u64>,
        target: &mut HashedWriter<'_, W>,
    ) -> Result<()> {
        let wanted = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let wanted = HeaderValue::try_from(wanted).map_err(|error| self.protocol(error.to_string()))?;
        let Received { peer, response, .. } = self.get(path).header(header::RANGE, wanted).response().await?;
        let mut download = Download { peer, body: response.into_body(), what: "resource" };
        let mut left = range.end - range.start;
        while let Some(piece) = download.next().await? {
            left =
                left.checked_sub(piece.len() as u64).ok_or_else(|| self.protocol("a range is too long"))?;
            target.write(&piece).await?;
        }
        match left {
            0 => Ok(()),
            _ => Err(self.protocol(format!("{left} bytes of a range are missing"))),
        }
    }
}

/// Copies a layer from the file that has it. One that is too short is told by the digest of the whole.
async fn copy<W: AsyncWrite + Unpin + Send>(
    KnownLayer { place, file, from }: KnownLayer,
    target: &mut HashedWriter<'_, W>,
) -> Result<()> {
    let local = |error: io::Error| ClientError::Local(error.to_string());
    let mut file = tokio::fs::File::from_std(file);
    file.seek(SeekFrom::Start(from)).await.map_err(local)?;
    let (mut content, mut piece) = (file.take(place.size), vec![0; PIECE]);
    loop {
        let read = content.read(&mut piece).await.map_err(local)?;
        if read == 0 {
            return Ok(());
        }
        target.write(piece.get(..read).unwrap_or_default()).await?;
    }
}
