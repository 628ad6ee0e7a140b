//! The backup that an incremental one builds on, as the controller that makes the new one needs it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use periapt_host_api::{
    Digest, ErrorCode, Refusal, Revision, StoreId,
    backup::{BaseBackup, BaseContents, MAX_DEPTH, MAX_FILENAME},
    excerpt,
};
use ring::digest::{Context, SHA256};
use tokio::io::AsyncReadExt as _;

/// The bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// The parts that a new backup leaves out, because the backup that it builds on has them. A full backup leaves out none.
#[derive(Debug, Default)]
pub(super) struct KnownParts {
    files: BTreeMap<String, Digest>,
    pub(super) charms: BTreeSet<Digest>,
    pub(super) resources: BTreeSet<Digest>,
}

impl KnownParts {
    /// Takes the contents of a base apart.
    ///
    /// # Errors
    /// The base has no name of a file, is a backup of another store, or builds on too many others.
    pub(super) fn of(base: BaseContents, store: StoreId) -> Result<(BaseBackup, Self), Refusal> {
        let BaseContents { backup, files, charms, resources } = base;
        let refused = |text: String| Err(Refusal::bad_request(text));
        // It stands in errors and in the new manifest, which is bounded.
        if backup.filename.len() > MAX_FILENAME || backup.filename.chars().any(char::is_control) {
            return refused(format!(
                "{:?} is no name of a backup: it has more than {MAX_FILENAME} bytes or control characters",
                excerpt::shortened(&backup.filename)
            ));
        }
        if backup.store != store {
            return refused(format!(
                "{} is a backup of the store {}, and this controller has the store {store}: make a full backup",
                backup.filename, backup.store
            ));
        }
        if backup.depth >= MAX_DEPTH {
            return refused(format!(
                "{} builds on {} other backups, at most {MAX_DEPTH} are allowed: make a full backup",
                backup.filename, backup.depth
            ));
        }
        let files = files.into_iter().map(|file| (file.name, file.digest)).collect();
        Ok((backup, Self { files, charms, resources }))
    }

    /// Returns the digest of a file of the store that is as the base has it. RocksDB gives another name to each file that
    /// it writes, but the content decides.
    pub(super) async fn unchanged(&self, name: &str, path: &Path) -> io::Result<Option<Digest>> {
        let Some(known) = self.files.get(name) else { return Ok(None) };
        let mut file = tokio::fs::File::open(path).await?;
        let (mut hasher, mut piece) = (Context::new(&SHA256), vec![0; PIECE]);
        loop {
            match file.read(&mut piece).await? {
                0 => break,
                read => hasher.update(piece.get(..read).unwrap_or_default()),
            }
        }
        Ok((hasher.finish().as_ref() == known.as_bytes()).then_some(*known))
    }
}

/// Refuses a base that is newer than the backup that is made.
pub(super) fn check_age(base: &BaseBackup, revision: Revision) -> Result<(), Refusal> {
    if base.revision <= revision {
        return Ok(());
    }
    let text = format!(
        "{} has revision {}, and this controller is at revision {revision}: make a full backup",
        base.filename, base.revision
    );
    Err(Refusal::new(ErrorCode::Conflict, text))
}
