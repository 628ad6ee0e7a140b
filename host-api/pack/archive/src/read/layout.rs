//! How an archive's bytes are divided: each belongs to one entry, or to the directory at the end, and what an entry says
//! of itself is what the directory says. So no two programs that read it can see different files.

use rawzip::{ZipArchive, ZipEntry, ZipFileHeaderRecord};

use super::{ArchiveError, NotAZip, Source, reader::Entry};

/// The fixed part of an entry in the directory, in bytes.
const DIRECTORY_RECORD: u64 = 46;

/// How many bytes may follow an entry's data if its sizes stand behind them: with a signature, or without.
const DESCRIPTOR: [u64; 2] = [16, 12];

/// What a header says of an entry's data, wherever it stands: CRC, and bytes before and after unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claims(u32, u64, u64);

/// How many bytes an entry of the directory has.
pub(super) fn record_bytes(record: &ZipFileHeaderRecord<'_>) -> u64 {
    let variable = record.file_path().as_bytes().len()
        + record.extra_fields().remaining_bytes().len()
        + record.comment().as_bytes().len();
    DIRECTORY_RECORD + variable as u64
}

/// Checks the entries' own headers, and that their bytes follow each other from the archive's first to its directory.
pub(super) fn check(
    zip: &ZipArchive<Source<'_>>,
    entries: &[Entry],
    buffer: &mut [u8],
) -> Result<(), ArchiveError> {
    let mut order: Vec<&Entry> = entries.iter().collect();
    order.sort_by_key(|entry| entry.start);
    let ends = order.iter().skip(1).map(|entry| entry.start).chain([zip.directory_offset()]);
    if let Some(first) = order.first()
        && first.start != 0
    {
        return Err(NotAZip::Before(first.start).into());
    }
    for (entry, end) in order.iter().zip(ends) {
        let local = zip.get_entry(entry.place).map_err(|error| entry.broken(&error))?;
        check_header(entry, &local, buffer)?;
        let (_, data_end) = local.compressed_data_range();
        let after =
            end.checked_sub(data_end).ok_or_else(|| entry.bad("its bytes are another entry's, too"))?;
        let fits = match entry.has_descriptor {
            false => after == 0,
            true => DESCRIPTOR.contains(&after),
        };
        if !fits {
            return Err(entry.bad("bytes that belong to no entry follow it"));
        }
        if entry.has_descriptor {
            let descriptor = local.reader().data_descriptor().map_err(|error| entry.broken(&error))?;
            let says =
                descriptor.map(|said| Claims(said.crc32(), said.compressed_size(), said.uncompressed_size()));
            if says != Some(claims(entry)) {
                return Err(entry.bad("what follows it says otherwise than the archive's directory"));
            }
        }
    }
    Ok(())
}

/// What the directory says.
fn claims(entry: &Entry) -> Claims {
    Claims(entry.crc, entry.place.compressed_size_hint(), entry.size)
}

fn check_header(
    entry: &Entry,
    local: &ZipEntry<'_, Source<'_>>,
    buffer: &mut [u8],
) -> Result<(), ArchiveError> {
    let header = local.local_header(buffer).map_err(|error| entry.broken(&error))?;
    let says = Claims(header.crc32(), header.compressed_size_hint(), header.uncompressed_size_hint());
    // Where they stand behind the data, they may be left out here.
    let left_out = entry.has_descriptor && says == Claims(0, 0, 0);
    let same = header.file_path().as_bytes() == entry.name.as_bytes()
        && header.compression_method() == entry.method
        && header.flags().has_data_descriptor() == entry.has_descriptor
        && !header.flags().is_encrypted()
        && (says == claims(entry) || left_out);
    match same {
        true => Ok(()),
        false => Err(entry.bad("its own header says otherwise than the archive's directory")),
    }
}
