//! The submission of clients' commands: read within bounds, encrypted, queued.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Durable;
use crate::{seal::SecretSealer, writer::Commands};

/// The number of large bodies that are read at a time. With the largest body it bounds the memory that clients can
/// use, however many streams they open.
const BODIES: usize = 64;

/// The parts that a request with commands needs. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Submission {
    /// The handle to the writer.
    pub(crate) commands: Commands,
    /// The encryption of confidential data in commands.
    pub(crate) sealer: SecretSealer,
    /// The state, with the models and secrets that data is encrypted for.
    pub(crate) durable: Durable,
    /// The permits for large bodies.
    pub(crate) bodies: Arc<Semaphore>,
}

impl Submission {
    pub(crate) fn new(commands: Commands, sealer: SecretSealer, durable: Durable) -> Self {
        Self { commands, sealer, durable, bodies: Arc::new(Semaphore::new(BODIES)) }
    }
}
