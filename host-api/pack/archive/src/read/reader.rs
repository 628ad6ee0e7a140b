//! A reader of archives in pieces: it checks the central directory at once, and unpacks files one after the other.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use flate2::read::DeflateDecoder;
use periapt_host_api::{charm::CharmFiles, yaml::MAX_DOCUMENT};
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipLocator};

use super::{
    ALLOWANCE, ArchiveError, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED, NotAZip, Source,
    entry::{CopyError, Entry},
    layout,
    names::Names,
};

/// The least bytes of a file or a directory on disk.
const BLOCK: u64 = 4096;

/// An archive whose central directory was read and is within the bounds. No file is in memory.
#[derive(Debug)]
pub struct ArchiveReader<'a> {
    zip: ZipArchive<Source<'a>>,
    files: BTreeMap<String, Entry>,
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
