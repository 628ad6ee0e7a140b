//! What a controller is built from.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_blobs::{BlobError, Blobs};
use periapt_helper::Program;
use periapt_host_api::StoreId;
use periapt_store::{Store, StoreError};
use periapt_store_rocksdb::RocksStore;

use crate::{
    clock::{Clock, RandomSource, SystemClock, SystemRandomSource},
    seal::SealKey,
};

/// How a controller is set up.
pub struct Options {
    /// The name that it takes at its first start.
    pub name: String,
    /// Where it listens; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// The engine that this version's agents run hooks in, and its version: shown in `status`.
    pub engine: String,
    /// Opens the store, at the start and again after it failed.
    pub store: Arc<dyn OpenStore>,
    /// Where charm archives and the content of resources lie.
    pub blobs: Blobs,
    /// Checks what is uploaded as a charm: a program that calls [`run_check_helper`](crate::run_check_helper).
    pub check_helper: Program,
    /// What secrets are kept under; whoever loses it loses them.
    pub seal: SealKey,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// Its chance.
    pub chance: Arc<dyn RandomSource>,
    /// How long requests in progress may take once it was told to stop; streams end at once.
    pub drain_within: Duration,
    /// After this long a connection is cut whose caller does not take what it is given, and one on which nothing is
    /// asked is closed.
    pub stall_within: Duration,
    /// In each such time an upload must bring 256 KiB, or it is broken off: 10 s, in which every line does that an
    /// archive of a Python charm could be sent over in time.
    pub upload_progress_within: Duration,
}

impl Options {
    /// A controller that keeps everything in one directory: `DIRECTORY/store` (RocksDB), `DIRECTORY/blobs`, and the
    /// key of its secrets in `DIRECTORY/secret-key`.
    /// Only one process at a time can have it.
    ///
    /// # Errors
    /// The directory cannot be made or used.
    pub fn in_directory(
        name: impl Into<String>,
        directory: &Path,
        listen: SocketAddr,
        engine: impl Into<String>,
        check_helper: Program,
    ) -> Result<Self, BlobError> {
        // Settings and journals lie in it, which are for nobody else on this machine.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| BlobError::Directory { directory: directory.display().to_string(), source })?;
        let blobs = Blobs::local(&directory.join("blobs"))?;
        let key = directory.join("secret-key");
        let unusable = |source| BlobError::Directory { directory: key.display().to_string(), source };
        let seal = SealKey::in_file(&key).map_err(unusable)?;
        let chance = Arc::new(SystemRandomSource);
        let store = RocksDirectory { directory: directory.join("store"), chance: chance.clone() };
        Ok(Self {
            name: name.into(),
            listen,
            engine: engine.into(),
            store: Arc::new(store),
            blobs,
            check_helper,
            seal,
            clock: Arc::new(SystemClock::default()),
            chance,
            drain_within: Duration::from_secs(5),
            stall_within: Duration::from_secs(120),
            upload_progress_within: Duration::from_secs(10),
        })
    }
}

/// Opens the store. Called again after a failure, when the one before was dropped.
pub trait OpenStore: Send + Sync + 'static {
    /// The store, ready to be read.
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>>;
}

/// A RocksDB store in a directory.
struct RocksDirectory {
    directory: PathBuf,
    chance: Arc<dyn RandomSource>,
}

impl OpenStore for RocksDirectory {
    fn open(&self) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async {
            let fresh = uuid::Builder::from_random_bytes(self.chance.seed()).into_uuid();
            let store = RocksStore::open(&self.directory, StoreId(fresh)).await?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn nobody_else_can_look_into_a_new_controllers_directory() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("controller");
        let helper = Program { path: "/nonexistent".into(), arguments: vec![], environment: vec![] };
        Options::in_directory("c", &directory, ([127, 0, 0, 1], 0).into(), "engine", helper).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
