//! The configuration of a controller.

use std::{
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_blobs::{BlobError, Blobs, SharedStore};
use periapt_helper::Program;
use periapt_host_api::StoreId;
use periapt_program::Programs;
use periapt_store::{Store, StoreError};
use periapt_store_rocksdb::RocksStore;

use crate::{
    clock::{Clock, RandomSource, SystemClock, SystemRandomSource},
    listen::Listen,
    oidc::OidcOptions,
    replication::ReplicationOptions,
    seal::SealKey,
};

/// The parts and settings of a controller.
pub struct Options {
    /// The name that the controller gets at its first start.
    pub name: String,
    /// The addresses to listen on.
    pub listen: Listen,
    /// The WebAssembly engine of this version's agents, and its version, for `status`.
    pub engine: String,
    /// The opener of the store, for the start and for each recovery from a failure.
    pub store: Arc<dyn OpenStore>,
    /// The blobs: charm archives and the content of resources. In an object store, they are claimed for this store when
    /// the controller starts.
    pub blobs: Blobs,
    /// The program that checks uploaded charms. It calls [`run_check_helper`](crate::run_check_helper).
    pub check_helper: Program,
    /// The key that encrypts secrets. Without it the secrets are lost.
    pub seal: SealKey,
    /// The controller's clocks.
    pub clock: Arc<dyn Clock>,
    /// The controller's source of randomness.
    pub random: Arc<dyn RandomSource>,
    /// The part that makes this controller one of several; none: it is alone, and its store is all there is.
    pub replication: Option<ReplicationOptions>,
    /// The issuer at which external users log in; none: users log in by password alone.
    pub oidc: Option<OidcOptions>,
    /// The programs by which the controller replaces itself; none: it keeps its own.
    pub programs: Option<Programs>,
    /// The directory of all this, for backups; none: the controller makes none.
    pub directory: Option<PathBuf>,
    /// The longest time for requests in progress after the controller is told to stop. Streams end at once.
    pub drain_within: Duration,
    /// The time after which a connection is closed if its caller does not read an answer, or sends no request.
    pub stall_within: Duration,
    /// The time in which an upload must bring 256 KiB. The default of 10 s fits every line that is fast enough to
    /// send the archive of a Python charm in time.
    pub upload_progress_within: Duration,
}

impl Options {
    /// Returns the options of a controller with all its data in one directory: `DIRECTORY/store` (RocksDB),
    /// `DIRECTORY/blobs`, and the key of its secrets in `DIRECTORY/secret-key`. Only one process can use the
    /// directory at a time.
    ///
    /// # Errors
    /// The directory cannot be created or used.
    pub fn in_directory(
        name: impl Into<String>,
        directory: &Path,
        listen: Listen,
        engine: impl Into<String>,
        check_helper: Program,
    ) -> Result<Self, BlobError> {
        // The directory has settings and journals, which other users of this machine must not read.
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| BlobError::Directory { directory: directory.display().to_string(), source })?;
        let blobs = Blobs::local(&directory.join("blobs"))?;
        let key = directory.join("secret-key");
        let unusable = |source| BlobError::Directory { directory: key.display().to_string(), source };
        let seal = SealKey::in_file(&key).map_err(unusable)?;
        let random = Arc::new(SystemRandomSource);
        let store = RocksDirectory { directory: directory.join("store") };
        Ok(Self {
            name: name.into(),
            listen,
            engine: engine.into(),
            store: Arc::new(store),
            blobs,
            check_helper,
            seal,
            replication: None,
            oidc: None,
            programs: None,
            directory: Some(directory.to_owned()),
            clock: Arc::new(SystemClock::default()),
            random,
            drain_within: Duration::from_secs(5),
            stall_within: Duration::from_secs(120),
            upload_progress_within: Duration::from_secs(10),
        })
    }

    /// Returns the same options with the blobs in an object store, of which `DIRECTORY/blob-cache` keeps a part.
    ///
    /// # Errors
    /// The directory cannot be created or used.
    pub fn with_shared_blobs(self, store: &SharedStore) -> Result<Self, BlobError> {
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        Ok(Self { blobs: Blobs::in_shared(store, &blob_cache(&directory))?, ..self })
    }
}

/// Returns the directory of a controller's cache of shared blobs.
pub(crate) fn blob_cache(directory: &Path) -> PathBuf {
    directory.join("blob-cache")
}

/// An opener of the store. After a failure it is called again, when the failed store is dropped.
pub trait OpenStore: Send + Sync + 'static {
    /// Opens the store, ready to be read. A new one gets this identity.
    fn open(&self, fresh: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>>;
}

/// A RocksDB store in a directory.
struct RocksDirectory {
    directory: PathBuf,
}

impl OpenStore for RocksDirectory {
    fn open(&self, fresh: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async move {
            let store = RocksStore::open(&self.directory, fresh).await?;
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
        let listen = Listen::InProcess(([127, 0, 0, 1], 0).into());
        Options::in_directory("c", &directory, listen, "engine", helper).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
