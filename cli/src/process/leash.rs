//! What ties a process to the one that started it, until that one has written down that it runs.
//!
//! It is a pipe to the new process's standard input. A word in it sets the process free; its end without a word means that
//! whoever started the process has gone, killed perhaps, and that nobody knows of it.

use std::io::{self, PipeReader, PipeWriter, Write as _};

use crate::{
    error::{Explain as _, Result},
    input,
};

/// Held by the process that has started another. Dropped, it ends the other.
#[derive(Debug)]
pub(crate) struct Leash(PipeWriter);

impl Leash {
    /// A leash, and its other end for the new process's standard input.
    pub(super) fn new() -> io::Result<(PipeReader, Self)> {
        let (reader, writer) = io::pipe()?;
        Ok((reader, Self(writer)))
    }

    /// Sets the process free: it is written down.
    pub(crate) fn release(mut self) {
        // If nobody takes the word, the process has ended by itself; it is seen by what was written down.
        let _ = self.0.write_all(b"\n");
    }
}

/// Ends this process as soon as the one that started it has gone without having set it free.
pub(crate) fn end_with_parent() -> Result<()> {
    let held = || {
        if !input::has_word() {
            tracing::error!("stopping: whoever started this process has ended before it was written down");
            std::process::exit(1);
        }
    };
    let started = std::thread::Builder::new().name("leash".to_owned()).spawn(held);
    started.map(drop).explain(|| "cannot start a thread".to_owned())
}
