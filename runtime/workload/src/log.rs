//! The log of a workload, written to the standard streams of its process, which the pod reads.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::AsFd as _,
    thread::{Builder, JoinHandle},
};

use periapt_sandbox::workload::{LogChunk, WorkloadStream};
use tokio::sync::mpsc;

/// Starts the thread that writes. It ends when all senders are gone.
pub(crate) fn start(mut chunks: mpsc::Receiver<LogChunk>) -> io::Result<JoinHandle<()>> {
    // Past the standard library's buffers: a chunk is whole lines already.
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    Builder::new().name("log".to_owned()).spawn(move || {
        while let Some(LogChunk { stream, bytes }) = chunks.blocking_recv() {
            let file = match stream {
                WorkloadStream::Stdout => &mut stdout,
                WorkloadStream::Stderr => &mut stderr,
            };
            // A reader that has gone misses it; the pod's end ends this process.
            let _ = file.write_all(&bytes);
        }
    })
}
