//! The start guard: a pipe between a process and its starter, until the starter has recorded that it runs.
//!
//! The pipe leads to the new process's standard input. A byte in it releases the process. Its end without a byte means
//! that the starter has gone, perhaps killed, and that no record names the process.

use std::io::{self, PipeReader, PipeWriter, Write as _};

use crate::{
    error::{Explain as _, Result},
    input,
};

/// The starter's end. When it is dropped, the other process ends.
#[derive(Debug)]
pub(crate) struct StartGuard(PipeWriter);

impl StartGuard {
    /// Creates a guard, and its other end for the new process's standard input.
    pub(super) fn new() -> io::Result<(PipeReader, Self)> {
        let (reader, writer) = io::pipe()?;
        Ok((reader, Self(writer)))
    }

    /// Releases the process after it was recorded.
    pub(crate) fn release(mut self) {
        // An error means that the process has ended by itself, which the record shows.
        let _ = self.0.write_all(b"\n");
    }
}

/// Ends this process as soon as its starter ends without having released it.
pub(crate) fn end_with_parent() -> Result<()> {
    let held = || {
        if !input::has_word() {
            tracing::error!("stopping: the process that started this one ended before it recorded it");
            std::process::exit(1);
        }
    };
    let started = std::thread::Builder::new().name("start-guard".to_owned()).spawn(held);
    started.map(drop).explain(|| "cannot start a thread".to_owned())
}
