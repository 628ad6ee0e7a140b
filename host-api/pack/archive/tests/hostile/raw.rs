//! Zips whose every byte a test decides; no library writes such.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::Write as _;

use flate2::{Compression, Crc, write::DeflateEncoder};

pub(crate) const STORED: u16 = 0;
pub(crate) const DEFLATED: u16 = 8;

/// The flag of a data descriptor, which holds the sizes behind the data.
pub(crate) const DESCRIPTOR: u16 = 1 << 3;

/// The fields of both headers of an entry.
#[derive(Clone)]
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) crc: u32,
    pub(crate) compressed: u32,
    pub(crate) size: u32,
}

/// An entry: its own header, its data, and its record in the central directory.
#[derive(Clone)]
pub(crate) struct Raw {
    pub(crate) local: Header,
    pub(crate) central: Header,
    /// The Unix mode; 0 means none.
    pub(crate) mode: u32,
    pub(crate) data: Vec<u8>,
    /// The bytes behind the data.
    pub(crate) after: Vec<u8>,
    /// True if the entry has no bytes of its own and shares those of the entry before it.
    pub(crate) shares: bool,
}

impl Raw {
    pub(crate) fn stored(name: &str, content: &[u8]) -> Self {
        Self::new(name, content, STORED, content.to_vec())
    }

    pub(crate) fn deflated(name: &str, content: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).unwrap();
        Self::new(name, content, DEFLATED, encoder.finish().unwrap())
    }

    fn new(name: &str, content: &[u8], method: u16, data: Vec<u8>) -> Self {
        let mut crc = Crc::new();
        crc.update(content);
        let header = Header {
            name: name.as_bytes().to_vec(),
            method,
            flags: 0,
            crc: crc.sum(),
            compressed: data.len() as u32,
            size: content.len() as u32,
        };
        Self { local: header.clone(), central: header, mode: 0, data, after: Vec::new(), shares: false }
    }

    /// Moves the sizes into a data descriptor, as programs without seeking do.
    pub(crate) fn streamed(self) -> Self {
        self.described(b"PK\x07\x08")
    }

    /// Moves the sizes into a data descriptor without a signature, which the format allows.
    pub(crate) fn streamed_unsigned(self) -> Self {
        self.described(b"")
    }

    fn described(mut self, signature: &[u8]) -> Self {
        let Header { crc, compressed, size, .. } = self.central;
        self.after = [signature, &crc.to_le_bytes(), &compressed.to_le_bytes(), &size.to_le_bytes()].concat();
        self.central.flags |= DESCRIPTOR;
        self.local = Header { crc: 0, compressed: 0, size: 0, ..self.central.clone() };
        self
    }
}

/// The bytes of an archive beside its entries.
#[derive(Clone, Default)]
pub(crate) struct Around {
    pub(crate) before: Vec<u8>,
    pub(crate) between: Vec<u8>,
    pub(crate) behind: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    /// A number to add to the number of entries.
    pub(crate) more: u16,
}

pub(crate) fn zip(entries: &[Raw]) -> Vec<u8> {
    zip_with(entries, &Around::default())
}

pub(crate) fn zip_with(entries: &[Raw], around: &Around) -> Vec<u8> {
    let (mut bytes, mut directory) = (around.before.clone(), Vec::new());
    let mut start = 0;
    for entry in entries {
        if !entry.shares {
            start = (bytes.len() - around.before.len()) as u32;
            bytes.extend_from_slice(b"PK\x03\x04");
            push(&mut bytes, &[20, entry.local.flags, entry.local.method, 0, 0]);
            sizes(&mut bytes, &entry.local);
            push(&mut bytes, &[entry.local.name.len() as u16, 0]);
            for part in [&entry.local.name, &entry.data, &entry.after] {
                bytes.extend_from_slice(part);
            }
        }
        directory.extend_from_slice(b"PK\x01\x02");
        push(&mut directory, &[20 | 3 << 8, 20, entry.central.flags, entry.central.method, 0, 0]);
        sizes(&mut directory, &entry.central);
        push(&mut directory, &[entry.central.name.len() as u16, 0, 0, 0, 0]);
        directory.extend_from_slice(&(entry.mode << 16).to_le_bytes());
        directory.extend_from_slice(&start.to_le_bytes());
        directory.extend_from_slice(&entry.central.name);
    }
    let offset = (bytes.len() - around.before.len()) as u32;
    bytes.extend_from_slice(&directory);
    bytes.extend_from_slice(&around.between);
    bytes.extend_from_slice(b"PK\x05\x06");
    let count = (entries.len() as u16).wrapping_add(around.more);
    push(&mut bytes, &[0, 0, count, count]);
    bytes.extend_from_slice(&(directory.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&offset.to_le_bytes());
    push(&mut bytes, &[around.comment.len() as u16]);
    bytes.extend_from_slice(&around.comment);
    bytes.extend_from_slice(&around.behind);
    bytes
}

fn push(bytes: &mut Vec<u8>, numbers: &[u16]) {
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn sizes(bytes: &mut Vec<u8>, header: &Header) {
    for number in [header.crc, header.compressed, header.size] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}
