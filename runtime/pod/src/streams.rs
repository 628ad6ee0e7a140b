//! Output of services and of checks, read until they end.

use std::{os::fd::OwnedFd, time::Duration};

use periapt_pebble::{Exit, PodInput, ProcessId};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::event::Event;

/// The most bytes that are read at once.
pub(crate) const CHUNK: usize = 16 << 10;

/// The time after a process's end in which its output is still read: others can hold the pipe open for ever.
const DRAIN: Duration = Duration::from_secs(1);

/// The bytes of a check's output that are kept.
const TAIL: usize = 2 << 10;

/// Makes a descriptor of a pipe one that tasks read.
pub(crate) fn reader(pipe: OwnedFd) -> std::io::Result<pipe::Receiver> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    pipe::Receiver::from_owned_fd_unchecked(pipe)
}

/// Makes a descriptor of a pipe one that tasks write.
pub(crate) fn writer(pipe: OwnedFd) -> std::io::Result<pipe::Sender> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    pipe::Sender::from_owned_fd_unchecked(pipe)
}

/// The use of what a process writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It goes to the log.
    Log,
    /// Its end is told with the exit.
    Tail,
}

/// Reads the output of a process, and tells its end once the output has been read.
pub(crate) async fn follow(
    process: ProcessId,
    mut output: pipe::Receiver,
    mut exit: oneshot::Receiver<i32>,
    events: mpsc::Sender<Event>,
    of: Use,
) {
    let mut tail = Vec::new();
    let mut buffer = vec![0; CHUNK];
    let mut code = None;
    let mut is_open = true;
    while code.is_none() {
        tokio::select! {
            read = output.read(&mut buffer), if is_open => match read {
                Ok(length) if length > 0 => take(process, buffer.get(..length).unwrap_or_default(), &mut tail, of, &events).await,
                _ => is_open = false,
            },
            // None: the process was never started.
            ended = &mut exit => match ended {
                Ok(ended) => code = Some(ended),
                Err(_) => return,
            },
        }
    }
    let drain = async {
        while is_open {
            match output.read(&mut buffer).await {
                Ok(length) if length > 0 => {
                    take(process, buffer.get(..length).unwrap_or_default(), &mut tail, of, &events).await;
                }
                _ => is_open = false,
            }
        }
    };
    let _ = timeout(DRAIN, drain).await;
    let exit = Exit { code: code.unwrap_or(-1), tail: String::from_utf8_lossy(&tail).into_owned() };
    let _ = events.send(Event::Input(PodInput::Exited(process, exit))).await;
}

async fn take(process: ProcessId, bytes: &[u8], tail: &mut Vec<u8>, of: Use, events: &mpsc::Sender<Event>) {
    match of {
        // The queue is bounded: a service that writes faster than lines are kept waits.
        Use::Log => {
            let _ = events.send(Event::Input(PodInput::Wrote(process, bytes.to_vec()))).await;
        }
        Use::Tail => {
            tail.extend_from_slice(bytes);
            let over = tail.len().saturating_sub(TAIL);
            tail.drain(..over);
        }
    }
}
