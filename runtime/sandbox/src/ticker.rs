//! The thread that increments the engine's epoch, so that computing hooks yield to others.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::JoinHandle,
    time::Duration,
};

use wasmtime::EngineWeak;

/// An epoch thread, which ticks at a fixed interval until it is dropped. It is a thread of its own because
/// looping hooks occupy the runtime's threads.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts the thread. It ends when the engine is dropped.
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
            // The thread cannot panic, and a panic could not be handled here.
            let _ = thread.join();
        }
    }
}
