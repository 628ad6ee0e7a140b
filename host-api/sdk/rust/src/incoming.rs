//! The bytes that a stream brings, read ahead and taken in order. Each byte is looked at once.

use std::io::{self, Read};

use crate::{Context as _, Error, Result};

/// The bytes of one read.
const PIECE: usize = 64 << 10;

/// A stream and the bytes of it that are read and not taken yet.
#[derive(Debug)]
pub(crate) struct Incoming<S> {
    stream: S,
    /// The place of one read.
    piece: Vec<u8>,
    bytes: Vec<u8>,
    taken: usize,
}

impl<S: Read> Incoming<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, piece: vec![0; PIECE], bytes: Vec::new(), taken: 0 }
    }

    /// Returns the stream, and the bytes that nobody took.
    pub(crate) fn into_parts(self) -> (S, Vec<u8>) {
        let rest = self.waiting().to_vec();
        (self.stream, rest)
    }

    fn waiting(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Reads a piece. Returns false at the end of the stream.
    fn more(&mut self) -> Result<bool> {
        self.bytes.drain(..self.taken.min(self.bytes.len()));
        self.taken = 0;
        let read = loop {
            match self.stream.read(&mut self.piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let length = read.context("reading a response")?;
        self.bytes.extend_from_slice(self.piece.get(..length).unwrap_or_default());
        Ok(length > 0)
    }

    /// Takes the bytes up to a mark, and the mark; none if there are more than `most`.
    pub(crate) fn until(&mut self, mark: &[u8], most: usize) -> Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            let waiting = self.waiting();
            let rest = waiting.get(searched..).unwrap_or_default();
            if let Some(place) = rest.windows(mark.len()).position(|bytes| bytes == mark) {
                let end = searched + place;
                let found = waiting.get(..end).filter(|_| end <= most).map(<[u8]>::to_vec);
                self.taken += end + mark.len();
                return Ok(found);
            }
            if waiting.len() > most {
                return Ok(None);
            }
            // A mark may begin in this piece and end in the next one.
            searched = (waiting.len() + 1).saturating_sub(mark.len());
            if !self.more()? {
                return Err(cut_off());
            }
        }
    }

    /// Takes so many bytes.
    pub(crate) fn exactly(&mut self, mut length: usize, into: &mut Vec<u8>) -> Result {
        loop {
            let bytes = self.waiting().get(..length.min(self.waiting().len())).unwrap_or_default();
            into.extend_from_slice(bytes);
            let taken = bytes.len();
            self.taken += taken;
            length -= taken;
            if length == 0 {
                return Ok(());
            }
            if !self.more()? {
                return Err(cut_off());
            }
        }
    }

    /// Takes all bytes to the end of the stream; none if there are more than `most`.
    pub(crate) fn rest(&mut self, most: usize) -> Result<Option<Vec<u8>>> {
        let mut rest = Vec::new();
        loop {
            rest.extend_from_slice(self.waiting());
            self.taken = self.bytes.len();
            if rest.len() > most {
                return Ok(None);
            }
            if !self.more()? {
                return Ok(Some(rest));
            }
        }
    }
}

fn cut_off() -> Error {
    Error::new("the response was cut off")
}
