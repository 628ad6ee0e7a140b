//! Streams to the unit's workloads.

use std::io::{self, Read, Write};

use crate::bindings::periapt::charm::workloads::{Received, Target};
use crate::{Error, Result, host};

/// A stream to a workload: to the Pebble of a container, or to a port. What is written takes effect at once, and stays if
/// the hook fails. The stream ends when it is dropped.
#[derive(Debug)]
pub struct WorkloadStream {
    number: u32,
}

impl WorkloadStream {
    pub(crate) fn to_pebble(container: &str) -> Result<Self> {
        Self::open(&Target::Pebble(container.to_owned()))
    }

    pub(crate) fn to_port(port: u16) -> Result<Self> {
        Self::open(&Target::Port(port))
    }

    fn open(target: &Target) -> Result<Self> {
        let number = host::workloads::connect(target).map_err(Error::refused)?;
        Ok(Self { number })
    }

    /// Sends bytes for at most a time in milliseconds. Returns how many went.
    pub(crate) fn send(&mut self, bytes: &[u8], milliseconds: u32) -> Result<usize> {
        let piece = bytes.get(..bytes.len().min(MAX_TRIED)).unwrap_or_default();
        let written =
            host::workloads::write(self.number, piece, Some(milliseconds)).map_err(Error::refused)?;
        Ok(usize::try_from(written).unwrap_or(usize::MAX).min(piece.len()))
    }

    /// Waits for bytes, for at most a time in milliseconds.
    pub(crate) fn receive(&mut self, milliseconds: u32) -> Result<Arrived> {
        let most = u32::try_from(MAX_PIECE).unwrap_or(u32::MAX);
        let received =
            host::workloads::read(self.number, most, Some(milliseconds)).map_err(Error::refused)?;
        Ok(match received {
            Received::Bytes(bytes) => Arrived::Bytes(bytes),
            Received::End => Arrived::End,
            Received::Nothing => Arrived::Nothing,
        })
    }

    /// Ends the writing: the workload reads to the end. Reading goes on.
    ///
    /// # Errors
    ///
    /// When the stream has broken.
    pub fn end_writing(&mut self) -> Result {
        host::workloads::shutdown(self.number).map_err(Error::refused)
    }
}

/// The bytes that came within a time.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// One byte or more.
    Bytes(Vec<u8>),
    /// The other end sends no more.
    End,
    /// None.
    Nothing,
}

impl Drop for WorkloadStream {
    fn drop(&mut self) {
        host::workloads::close(self.number);
    }
}

impl Read for WorkloadStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        if most == 0 {
            return Ok(0);
        }
        match host::workloads::read(self.number, most, None).map_err(refused)? {
            Received::Bytes(bytes) => {
                let length = bytes.len().min(buffer.len());
                let (place, bytes) = (buffer.get_mut(..length), bytes.get(..length));
                if let (Some(place), Some(bytes)) = (place, bytes) {
                    place.copy_from_slice(bytes);
                }
                Ok(length)
            }
            Received::End => Ok(0),
            Received::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for WorkloadStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..bytes.len().min(MAX_PIECE)).unwrap_or_default();
        let written = host::workloads::write(self.number, piece, None).map_err(refused)?;
        Ok(usize::try_from(written).unwrap_or(usize::MAX).min(piece.len()))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The most bytes of a call that may send few of them.
const MAX_TRIED: usize = 64 << 10;

/// The most bytes of one call, well below the host's bound.
const MAX_PIECE: usize = 256 << 10;

fn refused(error: crate::bindings::periapt::charm::types::Error) -> io::Error {
    io::Error::other(Error::refused(error).to_string())
}
