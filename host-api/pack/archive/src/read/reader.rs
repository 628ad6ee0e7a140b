//! A reader of archives in pieces: it checks the central directory at once, and unpacks files one after the other.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use flate2::read::DeflateDecoder;
use periapt_host_api::{charm::CharmFiles, yaml::MAX_DOCUMENT};
use rawzip::{
    CompressionMethod, CreatorSystem, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipArchiveEntryWayfinder,
    ZipFileHeaderRecord, ZipLocator,
};

use super::{
    ALLOWANCE, ArchiveError, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED, NotAZip, Source, layout,
    names::Names,
};

/// The bytes that are unpacked at a time.
const PIECE: usize = 64 << 10;

/// The least bytes of a file or a directory on disk.
const BLOCK: u64 = 4096;

/// The mask of a file's kind in its mode, and the kinds that matter here.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const LINK: u32 = 0o120_000;

/// An archive whose central directory was read and is within the bounds. No file is in memory.
#[derive(Debug)]
pub struct ArchiveReader<'a> {
    zip: ZipArchive<Source<'a>>,
    files: BTreeMap<String, Entry>,
}

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

impl<'a> ArchiveReader<'a> {
    /// Reads and checks the central directory of an archive in memory, or in a file.
    ///
    /// # Errors
    /// [`ArchiveError`] for bytes that are no archive, names that cannot be unpacked below a directory, and archives
    /// that unpack to too many bytes. Nothing is unpacked before.
    pub fn open(source: impl Into<Source<'a>>) -> Result<Self, ArchiveError> {
        let source = source.into();
        let length = source.length().map_err(ArchiveError::Unreadable)?;
        if length > MAX_ARCHIVE as u64 {
            return Err(ArchiveError::TooLarge(length));
        }
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let zip = ZipLocator::new()
            .locate_in_reader(source, &mut buffer, length)
            .map_err(|(_, error)| ArchiveError::of_zip(error))?;
        if zip.end_offset() != length {
            return Err(NotAZip::After.into());
        }
        let (entries, directories) = directory(&zip, &mut buffer)?;
        layout::check(&zip, &entries, &mut buffer)?;
        check_size(length, &entries, directories)?;
        let files = entries.into_iter().filter(|entry| !entry.is_directory());
        let files = files.map(|entry| (entry.name.clone(), entry)).collect();
        Ok(Self { zip, files })
    }

    /// Returns the paths of all files, in order. They are relative, with `/` between parts, and never lead out.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the bytes that a file unpacks to, or `None` if there is no such file.
    pub fn size(&self, path: &str) -> Option<u64> {
        self.files.get(path).map(|entry| entry.size)
    }

    /// Unpacks a file into a writer. A content that does not match its size and checksum is an error, at the latest
    /// at its end.
    ///
    /// # Errors
    /// [`CopyError`]; discard the written bytes then.
    pub fn copy(&self, path: &str, writer: &mut impl Write) -> Result<(), CopyError> {
        let missing = || ArchiveError::BadEntry { path: path.to_owned(), reason: "there is no such file" };
        let entry = self.files.get(path).ok_or_else(missing)?;
        let local = self.zip.get_entry(entry.place).map_err(|error| entry.broken(&error))?;
        match entry.method {
            CompressionMethod::STORE => entry.copy(&mut local.verifying_reader(local.reader()), writer),
            _ => entry.copy(&mut local.verifying_reader(DeflateDecoder::new(local.reader())), writer),
        }
    }

    /// Unpacks a file into memory. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        if self.size(path).is_none() {
            return Ok(None);
        }
        // The buffer grows with the bytes that arrive, so a false size takes no memory.
        let mut content = Vec::new();
        match self.copy(path, &mut content) {
            Ok(()) => Ok(Some(content)),
            Err(CopyError::Archive(error)) => Err(error),
            Err(CopyError::Write(error)) => Err(ArchiveError::Unreadable(error)),
        }
    }

    /// Unpacks all files but one, and discards their content. An archive that passes can be unpacked.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn verify_all_but(&self, path: &str) -> Result<(), ArchiveError> {
        for other in self.paths().filter(|other| *other != path) {
            match self.copy(other, &mut io::sink()) {
                Ok(()) => {}
                Err(CopyError::Archive(error)) => return Err(error),
                Err(CopyError::Write(error)) => return Err(ArchiveError::Unreadable(error)),
            }
        }
        Ok(())
    }

    /// Returns the metadata files.
    ///
    /// # Errors
    /// [`ArchiveError::NotText`], [`ArchiveError::LongText`], and those of [`ArchiveReader::read`].
    pub fn charm_files(&self) -> Result<CharmFiles, ArchiveError> {
        super::charm_files(|path| match self.size(path) {
            Some(size) if size > MAX_DOCUMENT as u64 => Err(ArchiveError::LongText(path, size)),
            _ => self.read(path),
        })
    }
}

/// Returns all entries, and the number of directories that they make.
fn directory(zip: &ZipArchive<Source<'_>>, buffer: &mut [u8]) -> Result<(Vec<Entry>, usize), ArchiveError> {
    let announced = zip.entries_hint();
    if announced > MAX_ENTRIES as u64 {
        return Err(ArchiveError::TooManyEntries(announced));
    }
    let (mut entries, mut names, mut bytes) = (Vec::new(), Names::default(), 0);
    let mut records = zip.entries(buffer);
    while let Some(record) = records.next_entry().map_err(ArchiveError::of_zip)? {
        if entries.len() as u64 == announced {
            return Err(NotAZip::Count.into());
        }
        bytes += layout::record_bytes(&record);
        let entry = Entry::of(&record)?;
        names.add(&entry.name).map_err(|reason| entry.bad(reason))?;
        entries.push(entry);
    }
    if entries.len() as u64 != announced {
        return Err(NotAZip::Count.into());
    }
    match zip.directory_offset() + bytes == zip.eocd_offset() {
        true => Ok((entries, names.directories())),
        false => Err(NotAZip::Hidden.into()),
    }
}

/// Checks the unpacked size against the archive's own size, so that a small archive cannot fill disk or memory.
fn check_size(length: u64, entries: &[Entry], directories: usize) -> Result<(), ArchiveError> {
    let most = ALLOWANCE.saturating_add(length.saturating_mul(MAX_RATIO)).min(MAX_UNPACKED);
    let on_disk = |entry: &Entry| entry.size.div_ceil(BLOCK).max(1).saturating_mul(BLOCK);
    let files = entries.iter().filter(|entry| !entry.is_directory()).map(on_disk);
    let unpacked = files.fold(directories as u64 * BLOCK, u64::saturating_add);
    match unpacked > most {
        true => Err(ArchiveError::TooMuchUnpacked { length, unpacked, most }),
        false => Ok(()),
    }
}

impl Entry {
    fn of(record: &ZipFileHeaderRecord<'_>) -> Result<Self, ArchiveError> {
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

    fn is_directory(&self) -> bool {
        self.name.ends_with('/')
    }

    pub(super) fn bad(&self, reason: &'static str) -> ArchiveError {
        ArchiveError::bad(&self.name, reason)
    }

    pub(super) fn broken(&self, error: &rawzip::Error) -> ArchiveError {
        ArchiveError::broken(&self.name, NotAZip::of(error).to_string())
    }

    /// Copies the output of a decoder. The decoder fails behind the entry's size.
    fn copy(&self, decoder: &mut impl Read, writer: &mut impl Write) -> Result<(), CopyError> {
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
