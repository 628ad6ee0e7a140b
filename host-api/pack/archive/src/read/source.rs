//! Sources of an archive's bytes.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use rawzip::ReaderAt;

/// An archive in memory, or in a file that is read piece by piece.
#[derive(Debug)]
pub enum Source<'a> {
    /// The whole archive in memory.
    Bytes(&'a [u8]),
    /// An open file.
    File(File),
}

impl Source<'_> {
    /// Returns the size of the archive, in bytes.
    pub(super) fn length(&self) -> io::Result<u64> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len() as u64),
            Self::File(file) => Ok(file.metadata()?.len()),
        }
    }
}

impl<'a> From<&'a [u8]> for Source<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<File> for Source<'_> {
    fn from(file: File) -> Self {
        Self::File(file)
    }
}

impl ReaderAt for Source<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self {
            Self::Bytes(bytes) => bytes.read_at(buffer, offset),
            Self::File(file) => file.read_at(buffer, offset),
        }
    }
}
