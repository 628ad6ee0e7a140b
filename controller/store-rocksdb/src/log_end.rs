//! Detection of a log whose last record has a corrupt length, as opposed to a torn write.
//!
//! RocksDB's logs (`*.log`, `MANIFEST-*`) are blocks of 32 KiB; a record is a checksum, a length, a kind and its
//! content. RocksDB takes a record that extends past the end of the file for a torn write, and drops it with all that
//! follows. That is right if bytes are missing. But if only the length is corrupt, RocksDB would silently lose
//! acknowledged commits. So this module tries the checksum with each shorter length.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

const BLOCK: usize = 32 * 1024;
/// The size of checksum, length and kind.
const HEADER: usize = 4 + 2 + 1;

/// Returns true if the last record of a log is intact except for its length.
pub(crate) fn hides_a_record(log: &Path) -> io::Result<bool> {
    let mut file = File::open(log)?;
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        // Before the last block, RocksDB itself reports a length that leads out of the block.
        if last_is_hidden(&block) {
            return Ok(true);
        }
        if block.len() < BLOCK {
            return Ok(false);
        }
    }
}

fn last_is_hidden(mut block: &[u8]) -> bool {
    while let Some((header, rest)) = block.split_first_chunk::<HEADER>() {
        let [c0, c1, c2, c3, l0, l1, kind] = *header;
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        if kind == 0 && length == 0 {
            // Preallocated space.
            return false;
        }
        match rest.get(length..) {
            Some(next) => block = next,
            None => return matches_shorter(u32::from_le_bytes([c0, c1, c2, c3]), kind, rest),
        }
    }
    false
}

/// Returns true if the checksum fits the kind with any prefix of the bytes.
fn matches_shorter(checksum: u32, kind: u8, bytes: &[u8]) -> bool {
    let mut crc = advance(!0, kind);
    if masked(!crc) == checksum {
        return true;
    }
    bytes.iter().any(|byte| {
        crc = advance(crc, *byte);
        masked(!crc) == checksum
    })
}

/// Advances a CRC-32C by one byte.
fn advance(crc: u32, byte: u8) -> u32 {
    (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg()))
}

/// Masks a checksum as RocksDB's logs do.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record as RocksDB writes it.
    fn record(content: &[u8]) -> Vec<u8> {
        let crc = content.iter().fold(advance(!0, 1), |crc, byte| advance(crc, *byte));
        let mut record = masked(!crc).to_le_bytes().to_vec();
        record.extend(u16::try_from(content.len()).unwrap().to_le_bytes());
        record.push(1);
        record.extend(content);
        record
    }

    #[test]
    fn the_checksum_is_the_one_of_the_standard() {
        let crc = b"123456789".iter().fold(!0, |crc, byte| advance(crc, *byte));
        assert_eq!(!crc, 0xe306_9283);
    }

    #[test]
    fn a_record_that_is_whole_but_for_its_length_is_found_and_a_torn_one_is_not() {
        let whole = [record(b"first"), record(b"second"), record(b"third")].concat();
        assert!(!last_is_hidden(&whole));
        for end in 0..whole.len() {
            assert!(!last_is_hidden(&whole[..end]), "torn at {end}");
        }
        for (start, bit) in [(0, 0x80), (12, 0x80), (25, 0x80)] {
            let mut lying = whole.clone();
            lying[start + 5] ^= bit;
            assert!(last_is_hidden(&lying), "the record at {start}");
            lying.extend([0; 20]);
            assert!(last_is_hidden(&lying), "the record at {start}, and reserved room");
        }
    }
}
