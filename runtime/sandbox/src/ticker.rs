//! The thread that raises the engine's epoch, so that a hook that computes gives way to others.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::JoinHandle,
    time::Duration,
};

use wasmtime::EngineWeak;

/// Raises the epoch at a fixed pace until it is dropped. A thread of its own, because the runtime's threads
/// are the ones that a spinning hook occupies.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. It ends by itself when the engine is gone.
    pub(crate) fn start(engine: EngineWeak, pace: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("periapt-epoch".to_owned()).spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pace) {
                let Some(engine) = engine.upgrade() else { return };
                engine.increment_epoch();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic, and nobody could do anything about it here.
            let _ = thread.join();
        }
    }
}
