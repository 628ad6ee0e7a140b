//! A backup that is made: a checkpoint of the store, then a stream of its files, of the blobs and of their digest.

use std::{collections::BTreeSet, io, path::Path, sync::Arc, time::Duration};

use axum::extract::FromRef;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use periapt_blobs::Blobs;
use periapt_host_api::{
    Digest, ErrorCode, Refusal, Revision,
    backup::{BackupRequest, KeyEncryption},
};
use ring::digest::{Context, SHA256};
use tokio::{io::AsyncReadExt as _, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    base::{KnownParts, check_age},
    entry::{self, BLOCK, EntryName, PartName},
    keys::BackupKeys,
    manifest::{BackupManifest, FORM},
    source::{BackupSource, Checkpoint},
};
use crate::{
    api::unavailable,
    clock::Clock,
    received::stream_of,
    state::{BlobHold, BlobKind, Charms, Contents, ControllerState, Durable, Resources, Streams},
};

/// The bytes of a piece.
const PIECE: u64 = 256 << 10;
/// The pieces that wait for a slow client.
const WAITING: usize = 4;
/// The longest wait for the state that the checkpoint has: the writer shows it right after it is stored.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// The parts that a backup is made from.
#[derive(Clone)]
pub(crate) struct BackupParts {
    source: BackupSource,
    durable: Durable,
    charms: Charms,
    resources: Resources,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

impl FromRef<ControllerState> for BackupParts {
    fn from_ref(state: &ControllerState) -> Self {
        let Streams { stop, .. } = &state.streams;
        Self {
            source: state.backups.clone(),
            durable: state.durable.clone(),
            charms: state.charms.clone(),
            resources: state.resources.clone(),
            clock: Arc::clone(&state.clock),
            stop: stop.clone(),
        }
    }
}

/// A backup that can be sent: nothing that it needs is deleted meanwhile.
pub(crate) struct PreparedBackup {
    stop: CancellationToken,
    checkpoint: Checkpoint,
    manifest: Vec<u8>,
    keys: Option<Vec<u8>>,
    known: KnownParts,
    charms: (Blobs, BTreeSet<Digest>),
    resources: (Blobs, BTreeSet<Digest>),
    _held: [BlobHold; 2],
}

/// The writer of a stream.
struct Sender {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    hasher: Context,
}

impl BackupParts {
    /// Makes a checkpoint, and gets ready all that the backup has.
    ///
    /// # Errors
    /// Another backup is made, the keys cannot be read, or the disk fails.
    pub(crate) async fn prepare(self, request: BackupRequest) -> Result<PreparedBackup, Refusal> {
        // A task of its own: a client that leaves must not have the checkpoint removed while it is still written.
        let prepared = tokio::spawn(self.checkpoint(request)).await;
        prepared.map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?
    }

    async fn checkpoint(self, request: BackupRequest) -> Result<PreparedBackup, Refusal> {
        let Some(directory) = self.source.directory() else {
            let text = "this controller has no directory to back up";
            return Err(Refusal::new(ErrorCode::NotSupported, text));
        };
        let Some(checkpoint) = self.source.begin(directory) else {
            return Err(Refusal::new(
                ErrorCode::Conflict,
                "another backup is made at the moment; try again later",
            ));
        };
        let failed = |text: String| Refusal::new(ErrorCode::Internal, text);
        let store = self.durable.records()?;
        let (base, known) = match request.base {
            None => (None, KnownParts::default()),
            Some(base) => {
                let (base, known) = KnownParts::of(base, store.id())?;
                (Some(base), known)
            }
        };
        // From here on no blob is forgotten, so the state that is shown later has all those of the checkpoint.
        let collectors = [&self.charms.contents.collector, &self.resources.contents.collector];
        let held = collectors.map(crate::state::BlobCollector::hold);
        for collector in collectors {
            drop(collector.lock_for_upload().await);
        }
        let revision = store.checkpoint(&checkpoint.path).await.map_err(|error| failed(error.to_string()))?;
        let id = store.id();
        drop(store);
        if let Some(base) = &base {
            check_age(base, revision)?;
        }
        let root = self.shown(revision).await?;
        let (keys, source) = match request.keys {
            None => (None, None),
            Some(KeyEncryption { key, source }) => {
                let keys = BackupKeys::in_directory(directory).map_err(|error| failed(error.to_string()))?;
                (Some((keys, key)), Some(source))
            }
        };
        let manifest = BackupManifest {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: id,
            revision,
            created: self.clock.now(),
            keys: source,
            base,
        };
        let manifest = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.to_string()))?;
        let keys = keys.map(|(keys, key)| keys.encrypt(&key, &manifest)).transpose();
        let keys = keys.map_err(|error| failed(error.to_string()))?;
        let charms: BTreeSet<_> = root.charms().map(|charm| charm.digest).collect();
        present(&self.charms.contents, charms.difference(&known.charms)).await?;
        let resources: BTreeSet<_> = BlobKind::Resource.known(&root).collect();
        present(&self.resources.contents, resources.difference(&known.resources)).await?;
        Ok(PreparedBackup {
            stop: self.stop,
            checkpoint,
            manifest,
            keys,
            known,
            charms: (self.charms.contents.blobs, charms),
            resources: (self.resources.contents.blobs, resources),
            _held: held,
        })
    }

    /// Returns a state that is at least as new as a revision.
    async fn shown(&self, revision: Revision) -> Result<periapt_model::Root, Refusal> {
        let mut states = self.durable.state.clone();
        let shown = async {
            loop {
                let published = states.seen();
                if published.revision() >= revision || !states.changed().await {
                    return published.root.clone();
                }
            }
        };
        let shown = tokio::time::timeout(SHOWN_WITHIN, shown).await;
        shown.map_err(|_| {
            Refusal::new(ErrorCode::StorageUnavailable, "the store is being opened again; try again later")
        })
    }
}

impl PreparedBackup {
    /// Returns the stream of the backup.
    pub(crate) fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let (pieces, received) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            let mut sender = Sender { pieces, hasher: Context::new(&SHA256) };
            let sent = tokio::select! {
                () = self.stop.cancelled() => Err("the controller stops".to_owned()),
                sent = sender.all(&self) => sent,
            };
            if let Err(reason) = sent {
                tracing::warn!(reason, "a backup was not completed");
                sender.failed(&reason).await;
            }
        });
        stream_of(received)
    }
}

impl Sender {
    async fn all(&mut self, prepared: &PreparedBackup) -> Result<(), String> {
        self.entry(&EntryName::Manifest, &prepared.manifest).await?;
        if let Some(keys) = &prepared.keys {
            self.entry(&EntryName::Keys, keys).await?;
        }
        for name in store_files(&prepared.checkpoint.path).map_err(|error| error.to_string())? {
            let path = prepared.checkpoint.path.join(&name);
            match prepared.known.unchanged(&name, &path).await.map_err(|error| error.to_string())? {
                Some(digest) => self.unchanged(PartName::Store(name), &digest).await?,
                None => self.file(name, &path).await?,
            }
        }
        let (blobs, digests) = &prepared.charms;
        for digest in digests {
            let name = PartName::Charm(*digest);
            match prepared.known.charms.contains(digest) {
                true => self.unchanged(name, digest).await?,
                false => self.blob(name, "charm", blobs, digest).await?,
            }
        }
        let (blobs, digests) = &prepared.resources;
        for digest in digests {
            let name = PartName::Resource(*digest);
            match prepared.known.resources.contains(digest) {
                true => self.unchanged(name, digest).await?,
                false => self.blob(name, "resource", blobs, digest).await?,
            }
        }
        let digest = hex::encode(self.hasher.clone().finish());
        self.entry(&EntryName::Digest, digest.as_bytes()).await?;
        self.send(Bytes::from_static(&[0; 2 * BLOCK])).await
    }

    async fn file(&mut self, name: String, path: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let file = tokio::fs::File::open(path).await.map_err(failed)?;
        let size = file.metadata().await.map_err(failed)?.len();
        self.begin(&EntryName::Part(PartName::Store(name)), size).await?;
        let mut file = file.take(size);
        let mut left = size;
        while left > 0 {
            let mut piece = Vec::new();
            file.set_limit(left.min(PIECE));
            let read = file.read_to_end(&mut piece).await.map_err(failed)? as u64;
            if read == 0 {
                return Err(format!("{} was truncated", path.display()));
            }
            left -= read;
            self.send(piece.into()).await?;
        }
        self.pad(size).await
    }

    /// Sends a blob. One that is damaged would make the backup useless, so it ends it.
    async fn blob(
        &mut self,
        name: PartName,
        what: &str,
        blobs: &Blobs,
        digest: &Digest,
    ) -> Result<(), String> {
        let missing = || format!("{what} {digest} is missing or damaged: upload it again");
        let found = blobs.get(digest, None).await.map_err(|error| error.to_string())?;
        let mut blob = found.ok_or_else(missing)?;
        self.begin(&EntryName::Part(name), blob.size).await?;
        let (mut own, mut left) = (Context::new(&SHA256), blob.size);
        while let Some(piece) = blob.content.next().await {
            let piece = piece.map_err(|error| error.to_string())?;
            own.update(&piece);
            left = left.checked_sub(piece.len() as u64).ok_or_else(missing)?;
            self.send(piece).await?;
        }
        if left > 0 || own.finish().as_ref() != digest.as_bytes() {
            return Err(missing());
        }
        self.pad(blob.size).await
    }

    /// Says that a part is as the base has it.
    async fn unchanged(&mut self, name: PartName, digest: &Digest) -> Result<(), String> {
        self.entry(&EntryName::Unchanged(name), digest.to_string().as_bytes()).await
    }

    async fn entry(&mut self, name: &EntryName, content: &[u8]) -> Result<(), String> {
        self.begin(name, content.len() as u64).await?;
        self.send(Bytes::copy_from_slice(content)).await?;
        self.pad(content.len() as u64).await
    }

    async fn begin(&mut self, name: &EntryName, size: u64) -> Result<(), String> {
        if size > entry::MAX_CONTENT {
            return Err(format!("a file of {size} bytes is too large for a backup"));
        }
        self.send(Bytes::copy_from_slice(&entry::header(name, size))).await
    }

    async fn pad(&mut self, size: u64) -> Result<(), String> {
        self.send(vec![0; entry::padding(size)].into()).await
    }

    async fn send(&mut self, piece: Bytes) -> Result<(), String> {
        self.hasher.update(&piece);
        self.pieces.send(Ok(piece)).await.map_err(|_| "the client is gone".to_owned())
    }

    /// Breaks the stream off, so that nobody takes it for a whole one.
    async fn failed(&mut self, reason: &str) {
        let _ = self.pieces.send(Err(io::Error::other(reason.to_owned()))).await;
    }
}

/// Checks that blobs are there, before the answer begins. One that only another controller has is fetched.
async fn present<'a>(
    contents: &Contents,
    digests: impl Iterator<Item = &'a Digest> + Send,
) -> Result<(), Refusal> {
    for digest in digests {
        contents.copies.obtain(contents, digest).await;
        if contents.blobs.size(digest).await.map_err(|error| unavailable(&error))?.is_none() {
            let text = format!("{} {digest} is missing: upload it again", contents.kind.as_str());
            return Err(Refusal::new(ErrorCode::StorageUnavailable, text));
        }
    }
    Ok(())
}

/// Returns the names of the files that a checkpoint consists of.
fn store_files(directory: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(entry::store_file).map(str::to_owned));
    }
    Ok(names)
}
