//! The state that the calls of `wasi:filesystem` use.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::ResourceTable;

use super::Files;
use crate::{limits::Limiter, meter::Meter};

/// A hook's files and the state that their calls need. A handle's number is its key in [`Files`]; the
/// generated resource types are only markers.
pub(crate) struct FilesView<'a> {
    pub(crate) files: &'a mut Files,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) meter: &'a Arc<Meter>,
    pub(crate) limiter: &'a mut Limiter,
    /// The semaphore that allows one sync at a time.
    pub(crate) syncs: &'a Arc<Semaphore>,
}
