//! Signals that interrupt a command which must clean up.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Explain as _, Result};

/// A listener for these signals. Once there is one, none of them ends the process by itself.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    /// Starts to listen.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).explain(|| "cannot listen to signals".to_owned());
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal, and returns its number.
    pub(crate) async fn next(&mut self) -> u8 {
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.hangup.recv() => SignalKind::hangup(),
        };
        u8::try_from(kind.as_raw_value()).unwrap_or_default()
    }
}
