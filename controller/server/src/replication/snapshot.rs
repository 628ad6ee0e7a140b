//! Snapshots: the state of one controller, for another that needs entries which the log does not have any more.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use periapt_client::{Client, ClientError};
use periapt_host_api::{Refusal, Revision, StoreId};
use periapt_log::{EntryError, LogHead, SnapshotError, SnapshotPart, SnapshotReader};
use periapt_store::{LoadedState, Order, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::received::stream_of;

/// The most snapshots that are made at a time: each holds all entities in memory.
const AT_ONCE: usize = 2;

/// The bytes of entities in one part.
const PART_BYTES: usize = 1 << 20;

/// The most records in one part.
const PART_RECORDS: usize = 32;

/// The most names of sequences in one read.
const PAGE: usize = 1_000;

/// The making of snapshots. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Snapshots(Arc<Semaphore>);

impl Default for Snapshots {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

/// The reason why no snapshot was made or taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotFailure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Entry(#[from] EntryError),
    #[error(transparent)]
    Read(#[from] SnapshotError),
    #[error("the store is not fed from a log")]
    WithoutLog,
    #[error("the snapshot is of another log, {0}")]
    OtherLog(StoreId),
    #[error("the snapshot is at {0}, and no newer than this controller")]
    Old(Revision),
    #[error("the snapshot is not whole")]
    Torn,
}

impl Snapshots {
    /// Begins a snapshot, which is read as its reader takes it.
    pub(crate) async fn begin(
        &self,
        store: Arc<dyn Store>,
    ) -> impl Stream<Item = Result<Bytes, SnapshotFailure>> + Send + 'static {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.0).acquire_owned().await.ok();
        let (pieces, taken) = mpsc::channel(2);
        tokio::spawn(async move {
            if let Err(failure) = write(&*store, &pieces, permit).await {
                // A reader that is gone needs no reason.
                let _ = pieces.send(Err(failure)).await;
            }
        });
        stream_of(taken)
    }
}

/// Writes all parts.
async fn write(
    store: &dyn Store,
    pieces: &mpsc::Sender<Result<Bytes, SnapshotFailure>>,
    _permit: Option<OwnedSemaphorePermit>,
) -> Result<(), SnapshotFailure> {
    // A reader that is gone ends the writing at its next piece.
    let gone = |_| SnapshotFailure::Torn;
    let LoadedState { revision: _, entities, note } = store.load().await?;
    let head = LogHead::decode(&note.ok_or(SnapshotFailure::WithoutLog)?)?;
    pieces.send(Ok(SnapshotPart::beginning())).await.map_err(gone)?;
    pieces.send(Ok(SnapshotPart::Head(head).encode()?)).await.map_err(gone)?;
    let (mut part, mut bytes, mut count) = (Vec::new(), 0, 0);
    for (key, value) in entities {
        bytes += key.len() + value.len();
        count += 1;
        part.push((key, value));
        if bytes >= PART_BYTES {
            let whole = SnapshotPart::Entities(std::mem::take(&mut part)).encode()?;
            pieces.send(Ok(whole)).await.map_err(gone)?;
            bytes = 0;
        }
    }
    pieces.send(Ok(SnapshotPart::Entities(part).encode()?)).await.map_err(gone)?;
    let mut records_count = 0;
    let mut last: Option<Vec<u8>> = None;
    loop {
        let names = store.sequences(last.as_deref(), PAGE).await?;
        let Some(name) = names.last() else { break };
        last = Some(name.clone());
        for sequence in names {
            let mut after = None;
            loop {
                let records = store.records(&sequence, Order::OldestFirst { after }, PART_RECORDS).await?;
                let Some(record) = records.last() else { break };
                after = Some(record.position);
                records_count += records.len() as u64;
                let part = SnapshotPart::Records { sequence: sequence.clone(), records };
                pieces.send(Ok(part.encode()?)).await.map_err(gone)?;
            }
        }
    }
    let end = SnapshotPart::End { entities: count, records: records_count };
    pieces.send(Ok(end.encode()?)).await.map_err(gone)
}

/// Takes a snapshot from another controller: writes its records into the store, and returns its state, which the caller
/// puts in the place of the store's. What is written before a failure does no harm.
pub(super) async fn take(
    client: &Client,
    store: &dyn Store,
    head: &LogHead,
) -> Result<(LogHead, LoadedState), SnapshotFailure> {
    let mut download = client.fetch_snapshot().await?;
    let mut reader = SnapshotReader::default();
    let mut taken = None;
    let (mut entities, mut records_count) = (Vec::new(), 0);
    loop {
        while let Some(part) = reader.next_part()? {
            match part {
                SnapshotPart::Head(of) if of.log != head.log => {
                    return Err(SnapshotFailure::OtherLog(of.log));
                }
                SnapshotPart::Head(of) if of.position <= head.position => {
                    return Err(SnapshotFailure::Old(of.position));
                }
                SnapshotPart::Head(of) => {
                    of.check_level()?;
                    taken = Some(of);
                }
                SnapshotPart::Entities(more) => entities.extend(more),
                SnapshotPart::Records { sequence, records } => {
                    records_count += records.len() as u64;
                    store.import(&sequence, records).await?;
                }
                SnapshotPart::End { entities: count, records } => {
                    let head = taken.ok_or(SnapshotFailure::Torn)?;
                    if count != entities.len() as u64 || records != records_count {
                        return Err(SnapshotFailure::Torn);
                    }
                    let note = Some(head.encode());
                    return Ok((head.clone(), LoadedState { revision: head.position, entities, note }));
                }
            }
        }
        let piece = download.next().await?.ok_or(SnapshotFailure::Torn)?;
        reader.push(&piece);
    }
}

impl From<SnapshotFailure> for Refusal {
    fn from(failure: SnapshotFailure) -> Self {
        Self::new(periapt_host_api::ErrorCode::StorageUnavailable, failure.to_string())
    }
}
