//! Streams over files.

use std::{os::unix::fs::FileExt as _, sync::Arc, time::Duration};

use bytes::Bytes;
use wasmtime_wasi::p2::{
    InputStream, OutputStream, Pollable, StreamError, StreamResult, bindings::filesystem::types::ErrorCode,
};

use super::{
    disk::StoredFile,
    tree::{MemoryFile, OpenFile},
};
use crate::{clock::HookClock, meter::Meter};

/// The most bytes of one read or write, which limits the host's allocation for a call.
pub(super) const MAX_PIECE: usize = 64 << 10;

/// A readable file.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Memory(Arc<MemoryFile>),
    Disk(Arc<OpenFile>),
    Stored(Arc<StoredFile>),
}

impl Source {
    /// Reads at most `length` bytes from `offset`; none at the end.
    pub(super) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ErrorCode> {
        let length = length.min(MAX_PIECE);
        match self {
            Self::Memory(file) => Ok(file.read(offset, length)),
            // This runs on the hook's thread: a read of a local file takes microseconds, less than a switch to
            // another thread.
            Self::Disk(open) => {
                let mut bytes = vec![0; length];
                let read = open.file.read_at(&mut bytes, offset).map_err(|_| ErrorCode::Io)?;
                bytes.truncate(read);
                Ok(bytes)
            }
            Self::Stored(file) => file.read(offset, length),
        }
    }

    /// Returns the file's length, in bytes.
    pub(super) fn size(&self) -> Result<u64, ErrorCode> {
        match self {
            Self::Memory(file) => Ok(file.size()),
            Self::Disk(open) => Ok(open.file.metadata().map_err(|_| ErrorCode::Io)?.len()),
            Self::Stored(file) => file.size(),
        }
    }

    /// Writes to a file in `/tmp` or in storage.
    pub(super) fn write(&self, offset: u64, bytes: &[u8], now: Duration) -> Result<(), ErrorCode> {
        match self {
            Self::Disk(_) => Err(ErrorCode::ReadOnly),
            // As in POSIX, an empty write never extends a file.
            Self::Memory(_) | Self::Stored(_) if bytes.is_empty() => Ok(()),
            Self::Memory(file) => file.write(offset, bytes, now),
            // This runs on the hook's thread, too: the bytes go to the page cache first.
            Self::Stored(file) => file.write(offset, bytes, now),
        }
    }

    /// Truncates the file or extends it with zeros.
    pub(super) fn resize(&self, size: u64, now: Duration) -> Result<(), ErrorCode> {
        match self {
            Self::Memory(file) => file.resize(size, now),
            Self::Disk(_) => Err(ErrorCode::ReadOnly),
            Self::Stored(file) => file.resize(size, now),
        }
    }

    /// Sets the file's times; `None` leaves a time unchanged.
    pub(super) fn set_times(
        &self,
        accessed: Option<Duration>,
        modified: Option<Duration>,
    ) -> Result<(), ErrorCode> {
        match self {
            Self::Memory(file) => {
                let mut content = file.content();
                content.accessed = accessed.unwrap_or(content.accessed);
                content.modified = modified.unwrap_or(content.modified);
                Ok(())
            }
            Self::Disk(_) => Err(ErrorCode::ReadOnly),
            Self::Stored(file) => file.set_times(accessed, modified),
        }
    }
}

pub(super) fn failed(error: ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

/// A reader of a file from a position on.
pub(super) struct FileReader {
    pub(super) source: Source,
    pub(super) position: u64,
    pub(super) meter: Arc<Meter>,
}

impl InputStream for FileReader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let bytes = self.source.read(self.position, size).map_err(failed)?;
        self.meter.call(bytes.len() as u64).map_err(|error| StreamError::Trap(error.into()))?;
        if bytes.is_empty() {
            return Err(StreamError::Closed);
        }
        self.position = self.position.saturating_add(bytes.len() as u64);
        Ok(bytes.into())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for FileReader {
    async fn ready(&mut self) {}
}

/// The position of a writer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Position {
    At(u64),
    End,
}

/// A writer of a file.
pub(super) struct FileWriter {
    pub(super) file: Source,
    pub(super) position: Position,
    pub(super) clock: Arc<HookClock>,
    pub(super) meter: Arc<Meter>,
}

impl OutputStream for FileWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.meter.call(bytes.len() as u64).map_err(|error| StreamError::Trap(error.into()))?;
        let offset = match self.position {
            Position::At(offset) => offset,
            Position::End => self.file.size().map_err(failed)?,
        };
        self.file.write(offset, &bytes, self.clock.time_of_day()).map_err(failed)?;
        if let Position::At(offset) = &mut self.position {
            *offset = offset.saturating_add(bytes.len() as u64);
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_PIECE)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for FileWriter {
    async fn ready(&mut self) {}
}
