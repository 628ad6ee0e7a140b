//! A charm's archive: a zip named `.charm`, with Juju's own files beside `charm.wasm`.
//!
//! [`ArchiveReader`] reads one that a stranger made, [`Archive`] holds one in memory; [`inspect`] says whether it can run
//! here; [`pack`] makes one; [`adapt`] turns a WASI preview 1 module into a component. Nothing here runs a guest, and no
//! bytes make these panic: a reader that does so all the same is answered as a refusal.

mod adapt;
mod guard;
mod pack;
mod read;
mod world;

use periapt_host_api::{
    Digest,
    charm::{CharmMeta, MetadataError},
};

pub use adapt::{AdaptError, adapt};
pub use guard::{ReaderPanicked, guarded_with_workers};
pub use pack::{Contents, PackError, Packed, pack, pack_with};
pub use read::{
    ALLOWANCE, Archive, ArchiveError, ArchiveReader, CopyError, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO,
    MAX_UNPACKED, NotAZip, Source, UnpackError,
};
pub use world::{ComponentReport, WorldError, check_component};

/// The component's name in an archive.
pub const COMPONENT: &str = "charm.wasm";

/// A charm that was read and can run here.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The archive's digest: the charm's identity.
    pub digest: Digest,
    /// The component's digest: what compiled code is kept under.
    pub component: Digest,
    /// What the charm declares.
    pub meta: CharmMeta,
    /// What the component imports.
    pub report: ComponentReport,
}

/// Why a charm is refused.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The archive is broken or dangerous.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The metadata is wrong.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// There is no component.
    #[error("the archive holds no charm.wasm")]
    NoComponent,
    /// The component does not fit.
    #[error("charm.wasm: {0}")]
    World(#[from] WorldError),
    /// A reader of it has a defect.
    #[error("the archive: {0}")]
    Reader(#[from] ReaderPanicked),
}

/// Reads a whole archive and checks all that can be checked without running it. Of what it unpacks, the metadata and the
/// component are held, nothing else.
///
/// # Errors
/// [`InspectError`] says what is wrong and where.
pub fn inspect(bytes: &[u8]) -> Result<Inspected, InspectError> {
    guard::guarded(|| read_and_check(bytes))?
}

fn read_and_check(bytes: &[u8]) -> Result<Inspected, InspectError> {
    let archive = ArchiveReader::open(bytes)?;
    let mut meta = CharmMeta::parse(&archive.charm_files()?)?;
    let component = archive.read(COMPONENT)?.ok_or(InspectError::NoComponent)?;
    archive.verify_all_but(COMPONENT)?;
    let report = check_component(&component)?;
    meta.grants.clone_from(&report.grants);
    Ok(Inspected { digest: Digest::of(bytes), component: Digest::of(&component), meta, report })
}
