//! One entry of an archive: what the central directory has of it, and its content.

use std::io::{self, Read, Write};

use rawzip::{CompressionMethod, CreatorSystem, ZipArchiveEntryWayfinder, ZipFileHeaderRecord};

use super::{ArchiveError, NotAZip};

/// The bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;

/// The mask of a file's kind in its mode, and the kinds that matter here.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// An entry as the central directory has it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) method: CompressionMethod,
    pub(super) has_descriptor: bool,
    pub(super) crc: u32,
    /// The bytes that the entry claims to unpack to. Unpacking verifies the claim.
    pub(super) size: u64,
    /// The offset of the entry in the archive.
    pub(super) start: u64,
    pub(super) place: ZipArchiveEntryWayfinder,
}

/// A file that was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The archive is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The writer failed.
    #[error("{0}")]
    Write(#[source] io::Error),
}

impl Entry {
    pub(super) fn of(record: &ZipFileHeaderRecord<'_>) -> Result<Self, ArchiveError> {
        let name = std::str::from_utf8(record.file_path().as_bytes())
            .map_err(|_| ArchiveError::bad("?", "its name is not UTF-8"))?;
        let bad = |reason| ArchiveError::bad(name, reason);
        let flags = record.flags();
        if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
            return Err(bad("it is encrypted"));
        }
        let directory = name.ends_with('/');
        match kind(record) {
            // The name decides if the entry is a directory; not every program writes a mode.
            0 | FILE => {}
            DIRECTORY if directory => {}
            LINK => return Err(bad("links are not taken")),
            _ => return Err(bad("its mode is not that of a file")),
        }
        if directory && record.uncompressed_size_hint() > 0 {
            return Err(bad("it is a directory with content"));
        }
        let method = record.compression_method();
        let sizes = (record.compressed_size_hint(), record.uncompressed_size_hint());
        match method {
            CompressionMethod::DEFLATE => {}
            CompressionMethod::STORE if sizes.0 == sizes.1 => {}
            CompressionMethod::STORE => return Err(bad("it is not compressed, and has two sizes")),
            _ => return Err(bad("it is compressed otherwise than by deflate")),
        }
        Ok(Self {
            name: name.to_owned(),
            method,
            has_descriptor: flags.has_data_descriptor(),
            crc: record.crc32(),
            size: sizes.1,
            start: record.local_header_offset(),
            place: record.wayfinder(),
        })
    }

    pub(super) fn is_directory(&self) -> bool {
        self.name.ends_with('/')
    }

    pub(super) fn bad(&self, reason: &'static str) -> ArchiveError {
        ArchiveError::bad(&self.name, reason)
    }

    pub(super) fn broken(&self, error: &rawzip::Error) -> ArchiveError {
        ArchiveError::broken(&self.name, NotAZip::of(error).to_string())
    }

    /// Copies the output of a decoder. The decoder fails behind the entry's size.
    pub(super) fn copy(&self, decoder: &mut impl Read, writer: &mut impl Write) -> Result<(), CopyError> {
        let mut buffer = vec![0; PIECE];
        loop {
            let read = match decoder.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // An error of the archive's file itself.
                Err(error) if error.raw_os_error().is_some() => {
                    return Err(ArchiveError::Unreadable(error).into());
                }
                Err(error) => return Err(ArchiveError::broken(&self.name, of_decoder(&error)).into()),
            };
            writer.write_all(buffer.get(..read).unwrap_or_default()).map_err(CopyError::Write)?;
        }
    }
}

/// Returns the kind of a file from the mode that Unix programs write; 0 means that there is none.
fn kind(record: &ZipFileHeaderRecord<'_>) -> u32 {
    match record.version_made_by().creator_system() {
        CreatorSystem::UNIX | CreatorSystem::MACOS => record.external_attributes() >> 16 & KIND,
        _ => 0,
    }
}

/// Describes a decoder's error in our own words if the library has none for people.
fn of_decoder(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rawzip::Error>()) {
        Some(error) => NotAZip::of(error).to_string(),
        None => error.to_string(),
    }
}
