//! A charm's archive: a zip named `.charm`, with Juju's own files beside `charm.wasm`.
//!
//! [`ArchiveReader`] reads an untrusted archive, [`Archive`] holds one in memory, [`inspect`] checks that one can run
//! here, [`pack`] makes one, and [`adapt`] turns a WASI preview 1 module into a component. [`adapt_workload`] and
//! [`check_workload`] do so for the components of workloads. These functions run no guest code and panic on no bytes: a
//! panic of a reader becomes a refusal.

mod adapt;
mod guard;
mod pack;
mod read;
mod world;

use std::collections::BTreeMap;

use periapt_host_api::{
    Digest,
    charm::{CharmMeta, MetadataError, WorkloadMeta},
    workloads::MAX_WORKLOAD_COMPONENT,
};

pub use adapt::{AdaptError, adapt, adapt_workload};
pub use guard::{ReaderPanicked, guarded_with_workers};
pub use pack::{Contents, PackError, Packed, pack, pack_with};
pub use read::{
    ALLOWANCE, Archive, ArchiveError, ArchiveReader, CopyError, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO,
    MAX_UNPACKED, NotAZip, Source, UnpackError,
};
pub use world::{ComponentReport, WorkloadMismatch, WorldError, check_component, check_workload};

/// The component's name in an archive.
pub const COMPONENT: &str = "charm.wasm";

/// A charm that was read and passed the checks.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The archive's digest, which identifies the charm.
    pub digest: Digest,
    /// The component's digest, the key of compiled code.
    pub component: Digest,
    /// The charm's metadata.
    pub meta: CharmMeta,
    /// The component's imports.
    pub report: ComponentReport,
}

/// A charm that was refused.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// The archive is broken or dangerous.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The metadata is invalid.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// There is no component.
    #[error("the archive holds no charm.wasm")]
    NoComponent,
    /// The component does not match the contract.
    #[error("charm.wasm: {0}")]
    World(#[from] WorldError),
    /// The metadata declares a workload whose component the charm does not have.
    #[error("workload {name}: the charm has no file {component}")]
    NoWorkload {
        /// The workload.
        name: String,
        /// The path that the metadata names.
        component: String,
    },
    /// A workload's component is too large to be run.
    #[error("workload {name}: {component} has {bytes} bytes; at most {MAX_WORKLOAD_COMPONENT} are run")]
    LargeWorkload {
        /// The workload.
        name: String,
        /// The component's path.
        component: String,
        /// The component's size.
        bytes: u64,
    },
    /// A workload's component is not what the metadata declares.
    #[error("workload {name}: {component}: {source}")]
    Workload {
        /// The workload.
        name: String,
        /// The component's path.
        component: String,
        /// The difference.
        source: Box<WorkloadMismatch>,
    },
    /// A reader of the archive panicked.
    #[error("the archive: {0}")]
    Reader(#[from] ReaderPanicked),
}

/// Reads a whole archive and checks it without running it. Only the metadata and the component are kept in memory.
///
/// # Errors
/// [`InspectError`] names the mistake and its place.
pub fn inspect(bytes: &[u8]) -> Result<Inspected, InspectError> {
    guard::guarded(|| read_and_check(bytes))?
}

fn read_and_check(bytes: &[u8]) -> Result<Inspected, InspectError> {
    let archive = ArchiveReader::open(bytes)?;
    let files = archive.charm_files()?;
    let mut meta = CharmMeta::parse(&files)?;
    let workloads = files.workloads()?;
    let component = archive.read(COMPONENT)?.ok_or(InspectError::NoComponent)?;
    archive.verify_all_but(COMPONENT)?;
    let report = check_component(&component)?;
    meta.grants.clone_from(&report.grants);
    check_workloads(&archive, workloads)?;
    Ok(Inspected { digest: Digest::of(bytes), component: Digest::of(&component), meta, report })
}

/// Checks the size of a workload's component.
pub(crate) fn check_size(name: &str, component: &str, bytes: u64) -> Result<(), InspectError> {
    let (name, component) = (name.to_owned(), component.to_owned());
    match bytes > MAX_WORKLOAD_COMPONENT {
        true => Err(InspectError::LargeWorkload { name, component, bytes }),
        false => Ok(()),
    }
}

/// Checks the components of workloads, one after the other, so that one at a time is in memory.
fn check_workloads(
    archive: &ArchiveReader<'_>,
    workloads: BTreeMap<String, WorkloadMeta>,
) -> Result<(), InspectError> {
    for (name, meta) in workloads {
        let (interface, component) = (meta.interface(), meta.component);
        check_size(&name, &component, archive.size(&component).unwrap_or_default())?;
        let Some(bytes) = archive.read(&component)? else {
            return Err(InspectError::NoWorkload { name, component });
        };
        check_workload(&bytes, interface).map_err(|source| InspectError::Workload {
            name,
            component,
            source: Box::new(source),
        })?;
    }
    Ok(())
}
