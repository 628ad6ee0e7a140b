//! The sections of components and modules in their binary formats.

use std::ops::Range;

use wasmparser::{BinaryReader, BinaryReaderError, SectionLimited};

// Sections of components.
pub(super) const CORE_MODULE: u8 = 1;
pub(super) const CORE_TYPE: u8 = 3;

// Sections of modules.
pub(super) const TYPE: u8 = 1;
pub(super) const IMPORT: u8 = 2;
pub(super) const FUNCTION: u8 = 3;
pub(super) const TABLE: u8 = 4;
pub(super) const MEMORY: u8 = 5;
pub(super) const GLOBAL: u8 = 6;
pub(super) const EXPORT: u8 = 7;
pub(super) const CODE: u8 = 10;

/// The binary format of some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Component,
    Module,
}

impl Kind {
    /// Returns the bytes before the first section.
    fn header(self) -> &'static [u8; 8] {
        match self {
            Self::Component => b"\0asm\x0d\0\x01\0",
            Self::Module => b"\0asm\x01\0\0\0",
        }
    }
}

/// A section of a component or a module.
pub(super) struct Section {
    pub(super) id: u8,
    /// The range of the content.
    pub(super) range: Range<usize>,
}

impl Section {
    pub(super) fn bytes<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        all.get(self.range.clone()).unwrap_or_default()
    }

    /// Parses the content as a list.
    pub(super) fn list<'a, T>(&self, all: &'a [u8]) -> Result<SectionLimited<'a, T>, BinaryReaderError> {
        SectionLimited::new(BinaryReader::new(self.bytes(all), self.range.start))
    }
}

/// Reads the sections of the outermost level, in order. Returns an empty list for bytes of another
/// format.
pub(super) fn read(bytes: &[u8], kind: Kind) -> Result<Vec<Section>, BinaryReaderError> {
    let mut sections = Vec::new();
    let mut reader = BinaryReader::new(bytes, 0);
    let header = kind.header();
    if reader.read_bytes(header.len())? != header {
        return Ok(sections);
    }
    while !reader.eof() {
        let (id, length) = (reader.read_u8()?, reader.read_var_u32()?);
        let start = reader.current_position();
        reader.read_bytes(length as usize)?;
        sections.push(Section { id, range: start..reader.current_position() });
    }
    Ok(sections)
}
