//! Snapshots: the state of one controller, for another that needs entries which the log does not have any more.

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use periapt_client::{Client, ClientError};
use periapt_host_api::{Refusal, Revision, StoreId};
use periapt_log::{EntryError, LogHead, SnapshotError, SnapshotPart, SnapshotReader};
use periapt_store::{Order, Store, StoreError, StoredState};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::received::stream_of;

/// The most snapshots that are made at a time: for each the store keeps what is replaced until its reader has taken all
/// entities, however slow it is.
const AT_ONCE: usize = 2;

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
                if !pieces.is_closed() {
                    tracing::error!(error = %failure, "no whole snapshot could be made for another controller");
                }
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
    let StoredState { revision: _, note, mut chunks } = store.load().await?;
    let head = LogHead::decode(&note.ok_or(SnapshotFailure::WithoutLog)?)?;
    pieces.send(Ok(SnapshotPart::beginning())).await.map_err(gone)?;
    pieces.send(Ok(SnapshotPart::Head(head).encode()?)).await.map_err(gone)?;
    let mut count = 0;
    while let Some(chunk) = chunks.try_next().await? {
        let entities = chunk.into_entities();
        count += entities.len() as u64;
        pieces.send(Ok(SnapshotPart::Entities(entities).encode()?)).await.map_err(gone)?;
    }
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

/// Takes a snapshot from another controller: writes its records into the store, and puts its state in the place of the
/// store's once all of it has come. What is written before a failure does no harm. Returns the entry after which the state
/// is.
pub(super) async fn take(
    client: &Client,
    store: &dyn Store,
    head: &LogHead,
) -> Result<LogHead, SnapshotFailure> {
    let download = client.fetch_snapshot().await?;
    let pieces = stream::try_unfold(download, |mut download| async move {
        Ok::<_, ClientError>(download.next().await?.map(|piece| (piece, download)))
    });
    take_pieces(pin!(pieces), store, head).await
}

/// Takes a snapshot that comes in pieces. The store stages its entities, so it takes memory for one part.
async fn take_pieces(
    pieces: Pin<&mut (impl Stream<Item = Result<Bytes, ClientError>> + Send)>,
    store: &dyn Store,
    head: &LogHead,
) -> Result<LogHead, SnapshotFailure> {
    store.unstage().await?;
    match read(pieces, store, head).await {
        Ok(taken) => {
            store.replace_by_staged(taken.position, Some(taken.encode())).await?;
            Ok(taken)
        }
        Err(failure) => {
            // If that fails, too, the next attempt does it, or the next start.
            let _ = store.unstage().await;
            Err(failure)
        }
    }
}

/// Reads a snapshot to its end: imports its records, and stages its entities.
async fn read(
    mut pieces: Pin<&mut (impl Stream<Item = Result<Bytes, ClientError>> + Send)>,
    store: &dyn Store,
    head: &LogHead,
) -> Result<LogHead, SnapshotFailure> {
    let mut reader = SnapshotReader::default();
    let mut taken = None;
    let (mut entities_count, mut records_count) = (0, 0);
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
                SnapshotPart::Entities(more) => {
                    entities_count += more.len() as u64;
                    store.stage(more).await?;
                }
                SnapshotPart::Records { sequence, records } => {
                    records_count += records.len() as u64;
                    store.import(&sequence, records).await?;
                }
                SnapshotPart::End { entities, records } => {
                    let head = taken.ok_or(SnapshotFailure::Torn)?;
                    if entities != entities_count || records != records_count {
                        return Err(SnapshotFailure::Torn);
                    }
                    return Ok(head);
                }
            }
        }
        let piece = pieces.next().await.ok_or(SnapshotFailure::Torn)??;
        reader.push(&piece);
    }
}

impl From<SnapshotFailure> for Refusal {
    fn from(failure: SnapshotFailure) -> Self {
        Self::new(periapt_host_api::ErrorCode::StorageUnavailable, failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, Level, Timestamp};
    use periapt_log::Term;
    use periapt_store::{Batch, LoadedState, MemoryStore};

    use super::*;

    const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

    fn head(log: StoreId, position: u64) -> LogHead {
        LogHead {
            log,
            position: Revision(position),
            term: Term(3),
            at: Timestamp::from_second(7).unwrap(),
            level: Level(2),
            digest: Digest::of(b"entry"),
        }
    }

    /// Returns the pieces of a snapshot of a store with two entities at a position, as another controller sends them.
    async fn sent(log: StoreId, position: u64) -> Vec<Bytes> {
        let store = MemoryStore::new(log);
        let entities = [(b"a".to_vec(), vec![1; 100]), (b"b".to_vec(), vec![2; 100])].into();
        let note = Some(head(log, position).encode());
        let state = LoadedState { revision: Revision(position), entities, note };
        store.replace(state).await.unwrap();
        let snapshots = Snapshots::default();
        let stream = snapshots.begin(Arc::new(store)).await;
        stream.map(|piece| piece.unwrap()).collect().await
    }

    async fn whole(store: &MemoryStore) -> LoadedState {
        store.load().await.unwrap().whole().await.unwrap()
    }

    /// Takes pieces on a controller whose store is at a position of the log, and returns the state of the store. Checks
    /// that a failure leaves the store as it is.
    async fn read_at(position: u64, pieces: Vec<Bytes>) -> Result<(LogHead, LoadedState), SnapshotFailure> {
        let store = MemoryStore::new(LOG);
        store.commit(Batch::default()).await.unwrap();
        // An attempt before was cut short.
        store.stage(vec![(b"left".to_vec(), Vec::new())]).await.unwrap();
        let before = whole(&store).await;
        let pieces = stream::iter(pieces.into_iter().map(Ok));
        let taken = take_pieces(pin!(pieces), &store, &head(LOG, position)).await;
        let after = whole(&store).await;
        match taken {
            Ok(taken) => Ok((taken, after)),
            Err(failure) => {
                assert_eq!(after, before, "nothing is replaced");
                store.replace_by_staged(before.revision, None).await.unwrap();
                assert!(whole(&store).await.entities.is_empty(), "nothing is staged any more");
                Err(failure)
            }
        }
    }

    #[tokio::test]
    async fn a_whole_snapshot_is_the_state_with_its_place_in_the_log() {
        let (taken, state) = read_at(11, sent(LOG, 12).await).await.unwrap();
        assert_eq!(taken, head(LOG, 12));
        assert_eq!((state.revision, state.entities.len()), (Revision(12), 2));
        assert_eq!(state.note, Some(taken.encode()));
    }

    #[tokio::test]
    async fn a_snapshot_that_ends_early_is_torn_wherever_it_ends() {
        let bytes: Vec<u8> = sent(LOG, 12).await.iter().flatten().copied().collect();
        for end in 0..bytes.len() {
            let read = read_at(11, vec![Bytes::copy_from_slice(&bytes[..end])]).await;
            assert!(matches!(read, Err(SnapshotFailure::Torn)), "{end} of {} bytes: {read:?}", bytes.len());
        }
    }

    #[tokio::test]
    async fn a_snapshot_that_lacks_a_part_is_torn() {
        let pieces = sent(LOG, 12).await;
        // The form, the head, the entities, and the end with their number.
        assert_eq!(pieces.len(), 4);
        for lacking in [1, 2] {
            let mut pieces = pieces.clone();
            pieces.remove(lacking);
            let read = read_at(11, pieces).await;
            assert!(matches!(read, Err(SnapshotFailure::Torn)), "without part {lacking}: {read:?}");
        }
        let mut twice = pieces.clone();
        twice.insert(2, pieces[2].clone());
        assert!(matches!(read_at(11, twice).await, Err(SnapshotFailure::Torn)));
    }

    #[tokio::test]
    async fn a_snapshot_of_another_log_or_of_an_earlier_state_is_refused_with_a_word() {
        let other = StoreId(uuid::Uuid::from_u128(2));
        let failure = read_at(11, sent(other, 12).await).await.unwrap_err();
        assert!(matches!(failure, SnapshotFailure::OtherLog(log) if log == other), "{failure}");
        assert!(failure.to_string().contains("is of another log, 00000000"), "{failure}");
        for position in [11, 12] {
            let failure = read_at(12, sent(LOG, position).await).await.unwrap_err();
            assert!(matches!(failure, SnapshotFailure::Old(at) if at.0 == position), "{failure}");
            assert!(failure.to_string().contains("no newer than this controller"), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_snapshot_of_a_newer_form_or_with_a_damaged_part_is_refused_with_a_word() {
        let bytes: Vec<u8> = sent(LOG, 12).await.iter().flatten().copied().collect();
        let damaged = async |index: usize| {
            let mut bytes = bytes.clone();
            bytes[index] ^= 0x80;
            read_at(11, vec![bytes.into()]).await.unwrap_err().to_string()
        };
        assert!(damaged(0).await.contains("use a newer periapt"));
        // The length of the first part, and the beginning of its compressed content.
        for index in [1, 9] {
            let failure = damaged(index).await;
            assert!(failure.starts_with("the snapshot cannot be read: "), "{failure}");
        }
    }

    #[tokio::test]
    async fn a_flipped_bit_changes_nothing_that_is_taken() {
        let bytes: Vec<u8> = sent(LOG, 12).await.iter().flatten().copied().collect();
        let whole = read_at(11, vec![bytes.clone().into()]).await.unwrap();
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 4;
            // Content that is said to be longer than it is reads as what it is.
            if let Ok(taken) = read_at(11, vec![damaged.into()]).await {
                assert_eq!(taken, whole, "byte {index}");
            }
        }
    }

    #[tokio::test]
    async fn a_store_that_no_log_feeds_sends_no_snapshot_and_says_why() {
        let snapshots = Snapshots::default();
        let stream = snapshots.begin(Arc::new(MemoryStore::new(LOG))).await;
        let pieces: Vec<_> = stream.collect().await;
        assert!(matches!(pieces.as_slice(), [Err(SnapshotFailure::WithoutLog)]), "{pieces:?}");
    }
}
