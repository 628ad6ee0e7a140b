//! Files with holes: GNU's form, and pax's 1.0.

use std::io::Read;

use tar::Header;

use super::{BLOCK, TarError, TarReader};
use crate::limits::MAX_PIECES;

/// The form of a sparse file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SparseForm {
    /// The map is in the header and in blocks behind it.
    Gnu,
    /// The map is the beginning of the content. The size of the file with its holes.
    Pax(u64),
}

/// The map of a sparse file.
#[derive(Debug)]
pub(super) struct SparseMap {
    /// The size with holes.
    pub(super) size: u64,
    /// Offsets and lengths, in order.
    pub(super) pieces: Vec<(u64, u64)>,
}

const MANY: TarError = TarError::Stream("it is sparse and has more than 10000 pieces");
const DAMAGED: TarError = TarError::Stream("its map of pieces is damaged");

/// Reads the map of a file with `stored` bytes. What the reader gives next is the content.
pub(super) fn read<R: Read>(
    form: SparseForm,
    header: &Header,
    reader: &mut TarReader<R>,
    stored: u64,
) -> Result<SparseMap, TarError> {
    let (map, stored) = match form {
        SparseForm::Gnu => (gnu(header, reader)?, stored),
        SparseForm::Pax(size) => {
            let mut map = PaxMap { reader, read: 0 };
            let pieces = map.pieces()?;
            let stored = stored.checked_sub(map.read).ok_or(DAMAGED)?;
            (SparseMap { size, pieces }, stored)
        }
    };
    let (mut end, mut sum) = (0_u64, 0_u64);
    for (offset, length) in &map.pieces {
        if *offset < end {
            return Err(TarError::Stream("its pieces overlap"));
        }
        end = offset.checked_add(*length).ok_or(DAMAGED)?;
        sum = sum.checked_add(*length).ok_or(DAMAGED)?;
    }
    match end <= map.size && sum == stored {
        true => Ok(map),
        false => Err(TarError::Stream("its pieces are more or less than its content")),
    }
}

fn gnu<R: Read>(header: &Header, reader: &mut TarReader<R>) -> Result<SparseMap, TarError> {
    let own = header.as_gnu().ok_or(TarError::Stream("it is sparse, and its header is not GNU's"))?;
    let size = own.real_size().map_err(|_| DAMAGED)?;
    let mut pieces = Vec::new();
    for piece in own.sparse.iter().filter(|piece| !piece.is_empty()) {
        pieces.push((piece.offset().map_err(|_| DAMAGED)?, piece.length().map_err(|_| DAMAGED)?));
    }
    let mut more = own.is_extended();
    let content = (reader.left, reader.padding);
    while more {
        let mut block = tar::GnuExtSparseHeader::new();
        (reader.left, reader.padding) = (BLOCK, 0);
        reader.read_exact(block.as_mut_bytes()).map_err(TarError::Read)?;
        for piece in block.sparse.iter().filter(|piece| !piece.is_empty()) {
            pieces.push((piece.offset().map_err(|_| DAMAGED)?, piece.length().map_err(|_| DAMAGED)?));
        }
        if pieces.len() > MAX_PIECES {
            return Err(MANY);
        }
        more = block.is_extended();
        if more && block.sparse.iter().all(tar::GnuSparseHeader::is_empty) {
            return Err(DAMAGED);
        }
    }
    (reader.left, reader.padding) = content;
    Ok(SparseMap { size, pieces })
}

/// The map at the beginning of a content: numbers in decimal, one a line, up to the end of a block.
struct PaxMap<'a, R> {
    reader: &'a mut TarReader<R>,
    read: u64,
}

impl<R: Read> PaxMap<'_, R> {
    fn pieces(&mut self) -> Result<Vec<(u64, u64)>, TarError> {
        let mut block = Block::default();
        let count = self.number(&mut block)?;
        if count > MAX_PIECES as u64 {
            return Err(MANY);
        }
        let mut pieces = Vec::new();
        for _ in 0..count {
            pieces.push((self.number(&mut block)?, self.number(&mut block)?));
        }
        Ok(pieces)
    }

    fn number(&mut self, block: &mut Block) -> Result<u64, TarError> {
        let mut value: Option<u64> = None;
        loop {
            match self.byte(block)? {
                b'\n' => return value.ok_or(DAMAGED),
                digit @ b'0'..=b'9' => {
                    let tens = value.unwrap_or(0).checked_mul(10);
                    value = tens.and_then(|tens| tens.checked_add(u64::from(digit - b'0')));
                    value.ok_or(DAMAGED)?;
                }
                _ => return Err(DAMAGED),
            }
        }
    }

    fn byte(&mut self, block: &mut Block) -> Result<u8, TarError> {
        if block.rest.is_empty() {
            let mut bytes = vec![0; BLOCK as usize];
            self.reader.read_exact(&mut bytes).map_err(|_| DAMAGED)?;
            self.read = self.read.saturating_add(BLOCK);
            bytes.reverse();
            block.rest = bytes;
        }
        block.rest.pop().ok_or(DAMAGED)
    }
}

/// The bytes of a block that are not read, last first.
#[derive(Default)]
struct Block {
    rest: Vec<u8>,
}
