//! How a client's commands come to the writer: read within bounds, sealed, queued.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Durable;
use crate::{commands::Commands, seal::SecretSealer};

/// How many large bodies are read at a time: with the largest that is taken it bounds what clients can make the
/// controller hold, however many streams they open.
const BODIES: usize = 64;

/// What a request with commands needs. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Intake {
    /// The way to the writer.
    pub(crate) commands: Commands,
    /// Seals what is confidential in them.
    pub(crate) sealer: SecretSealer,
    /// Which models and secrets there are to seal for.
    pub(crate) durable: Durable,
    /// Permits of large bodies.
    pub(crate) bodies: Arc<Semaphore>,
}

impl Intake {
    pub(crate) fn new(commands: Commands, sealer: SecretSealer, durable: Durable) -> Self {
        Self { commands, sealer, durable, bodies: Arc::new(Semaphore::new(BODIES)) }
    }
}
