//! Readers that check what passes through them.

use std::{
    io::{self, Read},
    time::Instant,
};

use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};

use crate::limits::too_slow;

/// The error of bytes that are not as their descriptor says. It is no error of the host.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Mismatch(pub(crate) String);

/// Returns an error of a reader for bytes that are refused.
pub(crate) fn refused(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Mismatch(reason.into()))
}

/// A blob that is checked against its size and digest. The check is at its end: a reader must read until there is no
/// more, and gets an error instead of the end if they differ.
pub(crate) struct VerifiedBlob<R> {
    reader: R,
    hash: Sha256,
    /// `None` if nothing names the bytes.
    expected: Option<Digest>,
    size: u64,
    left: u64,
    is_checked: bool,
}

impl<R: Read> VerifiedBlob<R> {
    pub(crate) fn new(reader: R, expected: Option<Digest>, size: u64) -> Self {
        Self { reader, hash: Sha256::new(), expected, size, left: size, is_checked: false }
    }

    fn check(&mut self) -> io::Result<()> {
        if self.is_checked {
            return Ok(());
        }
        if self.left > 0 {
            let found = self.size.saturating_sub(self.left);
            return Err(refused(format!("it has {found} bytes, and its descriptor says {}", self.size)));
        }
        if retried(&mut self.reader, &mut [0])? > 0 {
            return Err(refused(format!("it has more than the {} bytes of its descriptor", self.size)));
        }
        let found = Digest::from_bytes(self.hash.clone().finalize().into());
        if self.expected.is_some_and(|expected| expected != found) {
            return Err(refused(format!("its bytes have the digest sha256:{found}")));
        }
        self.is_checked = true;
        Ok(())
    }
}

impl<R: Read> Read for VerifiedBlob<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let most = usize::try_from(self.left).unwrap_or(buffer.len()).min(buffer.len());
        let piece = buffer.get_mut(..most).unwrap_or_default();
        let read = if piece.is_empty() { 0 } else { self.reader.read(piece)? };
        if read == 0 {
            self.check()?;
            return Ok(0);
        }
        self.hash.update(piece.get(..read).unwrap_or_default());
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// A stream with a bound on its bytes and on its time, whose digest is taken.
pub(crate) struct BoundedStream<R> {
    reader: R,
    hash: Sha256,
    left: u64,
    most: u64,
    stored: u64,
    until: Option<Instant>,
    time: std::time::Duration,
}

impl<R: Read> BoundedStream<R> {
    /// Bounds the bytes that `stored` bytes unpack to.
    pub(crate) fn new(reader: R, stored: u64, budget: &crate::limits::Budget) -> Self {
        let most = budget.limits.unpacked_of(stored);
        let (until, time) = (budget.until(), budget.limits.time);
        Self { reader, hash: Sha256::new(), left: most, most, stored, until, time }
    }

    /// Reads the rest, and returns the digest of all bytes.
    pub(crate) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(Digest::from_bytes(self.hash.finalize().into()))
    }
}

impl<R: Read> Read for BoundedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err(refused(too_slow(self.time)));
        }
        let read = self.reader.read(buffer)?;
        self.hash.update(buffer.get(..read).unwrap_or_default());
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            refused(format!("it has {} bytes and unpacks to more than {}", self.stored, self.most))
        })?;
        Ok(read)
    }
}

fn retried(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
