//! The layout of a zip: each byte belongs to one entry or to the central directory, and an entry's own header agrees
//! with the central directory. So no two programs can see different files in it.

use rawzip::{ZipArchive, ZipEntry, ZipFileHeaderRecord};

use super::{ArchiveError, NotAZip, Source, entry::Entry};

/// The fixed part of an entry in the central directory, in bytes.
const DIRECTORY_RECORD: u64 = 46;

/// The sizes of a data descriptor (CRC and sizes behind an entry's data) in bytes: with a signature, or without.
const DESCRIPTOR: [u64; 2] = [16, 12];

/// The claims of a header about an entry's data: CRC, and bytes before and after unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claims(u32, u64, u64);

/// Counts the bytes of an entry of the central directory.
pub(super) fn record_bytes(record: &ZipFileHeaderRecord<'_>) -> u64 {
    let variable = record.file_path().as_bytes().len()
        + record.extra_fields().remaining_bytes().len()
        + record.comment().as_bytes().len();
    DIRECTORY_RECORD + variable as u64
}

/// Checks the entries' own headers, and that their bytes follow each other without gaps from the archive's first byte
/// to its central directory.
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

/// Returns the claims of the central directory.
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
    // With a data descriptor, the entry's own header may leave the claims out.
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
