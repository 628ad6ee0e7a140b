//! A reader of tar: the forms of POSIX (ustar and pax) and of GNU. It is read in one way, or refused.
//!
//! The reader holds one header with its extensions, and no content. It follows decision 38: what programs would read
//! in different ways is an error.

mod error;
mod member;
mod path;
mod pax;
mod plain;
mod sparse;

use std::io::{self, Read};

use tar::Header;

pub(crate) use error::TarError;
pub(crate) use member::{Member, MemberKind};
pub(crate) use path::{is_link_target, relative};
pub(crate) use plain::plain_header;

use crate::limits::MAX_EXTENSION;
use member::Extensions;

/// The unit of tar, in bytes.
pub(crate) const BLOCK: u64 = 512;

/// The bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// A tar that is read from its beginning to its end.
#[derive(Debug)]
pub(crate) struct TarReader<R> {
    reader: R,
    /// The bytes of the present member's content that are not read.
    left: u64,
    /// The bytes between the content and the next header.
    padding: u64,
    /// The bytes before `left`, from the beginning of the tar.
    position: u64,
}

impl<R: Read> TarReader<R> {
    /// Reads a tar from its beginning.
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, left: 0, padding: 0, position: 0 }
    }

    /// Reads the header of the next member. `None` is the end; what follows it are zeros.
    pub(crate) fn next(&mut self) -> Result<Option<Member>, TarError> {
        self.skip()?;
        let mut extensions = Extensions::default();
        loop {
            let Some(header) = self.header()? else {
                return match extensions.is_empty() {
                    true => Ok(None),
                    false => Err(TarError::Stream("it ends after an extended header")),
                };
            };
            let size = header.entry_size().map_err(|_| TarError::Stream("a header has no valid size"))?;
            match header.entry_type().as_byte() {
                b'x' => extensions.pax(&self.extension(size)?)?,
                b'g' => pax::check_global(&self.extension(size)?)?,
                b'L' => extensions.long_path(self.extension(size)?)?,
                b'K' => extensions.long_link(self.extension(size)?)?,
                _ => return self.member(&header, size, extensions).map(Some),
            }
        }
    }

    fn member(&mut self, header: &Header, size: u64, extensions: Extensions) -> Result<Member, TarError> {
        self.left = size;
        self.padding = padding(size);
        let mut member = Member::of(header, size, extensions)?;
        if let Some(form) = member.sparse_form.take() {
            let map = sparse::read(form, header, self, member.size)
                .map_err(|error| TarError::within(error, &member.path))?;
            member.size = map.size;
            member.pieces = Some(map.pieces);
        }
        Ok(member)
    }

    /// Copies the content of the present member. A sparse one is written in its pieces.
    pub(crate) fn copy(
        &mut self,
        member: &Member,
        mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), TarError> {
        let whole = [(0, member.size)];
        let pieces = member.pieces.as_deref().unwrap_or(&whole);
        let mut buffer = vec![0; PIECE];
        for (offset, length) in pieces {
            let (mut at, mut left) = (*offset, *length);
            while left > 0 {
                let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                let piece = buffer.get_mut(..most).unwrap_or_default();
                let read = retried(self, piece)?;
                if read == 0 {
                    return Err(TarError::Stream("it ends within a file"));
                }
                write(at, piece.get(..read).unwrap_or_default()).map_err(TarError::Write)?;
                at = at.saturating_add(read as u64);
                left = left.saturating_sub(read as u64);
            }
        }
        Ok(())
    }

    /// Returns the offset of the present content in the tar.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Passes over the present content without reading it. `seek` moves the source forward.
    pub(crate) fn skip_by(
        &mut self,
        seek: impl FnOnce(&mut R, u64) -> io::Result<()>,
    ) -> Result<(), TarError> {
        let bytes = self.left.saturating_add(self.padding);
        seek(&mut self.reader, bytes).map_err(TarError::Read)?;
        self.position = self.position.saturating_add(bytes);
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// Reads what remains of the source, which must be zeros.
    fn rest_is_zero(&mut self) -> Result<(), TarError> {
        let mut buffer = vec![0; PIECE];
        loop {
            match retried(&mut self.reader, &mut buffer)? {
                0 => return Ok(()),
                read if buffer.get(..read).unwrap_or_default().iter().all(|byte| *byte == 0) => {}
                _ => return Err(TarError::Stream("there is data behind its end")),
            }
        }
    }

    fn skip(&mut self) -> Result<(), TarError> {
        let mut left = self.left.saturating_add(self.padding);
        let mut buffer = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(buffer.len());
            let read = retried(&mut self.reader, buffer.get_mut(..most).unwrap_or_default())?;
            if read == 0 {
                return Err(TarError::Stream("it ends within a file"));
            }
            left = left.saturating_sub(read as u64);
            self.position = self.position.saturating_add(read as u64);
        }
        (self.left, self.padding) = (0, 0);
        Ok(())
    }

    /// Reads a header with a valid checksum. `None` is the end.
    fn header(&mut self) -> Result<Option<Header>, TarError> {
        let mut block = [0; BLOCK as usize];
        let mut read = 0;
        while let Some(rest) = block.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match retried(&mut self.reader, rest)? {
                0 if read == 0 => return Ok(None),
                0 => return Err(TarError::Stream("it ends within a header")),
                more => read += more,
            }
        }
        self.position = self.position.saturating_add(BLOCK);
        if block.iter().all(|byte| *byte == 0) {
            self.rest_is_zero()?;
            return Ok(None);
        }
        let header = Header::from_byte_slice(&block).clone();
        let sum = |range: &[u8]| range.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let (before, after) = (block.get(..148).unwrap_or_default(), block.get(156..).unwrap_or_default());
        let expected = sum(before) + sum(after) + 8 * u32::from(b' ');
        match header.cksum() {
            Ok(found) if found == expected => Ok(Some(header)),
            _ => Err(TarError::Stream("a header has a wrong checksum: it is no tar, or damaged")),
        }
    }

    /// Reads the content of an extended header.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, TarError> {
        if size > MAX_EXTENSION {
            return Err(TarError::Stream("an extended header is larger than 1 MiB"));
        }
        (self.left, self.padding) = (size, padding(size));
        let mut content = Vec::new();
        self.by_ref().take(size).read_to_end(&mut content).map_err(TarError::Read)?;
        if content.len() as u64 != size {
            return Err(TarError::Stream("it ends within an extended header"));
        }
        self.skip()?;
        Ok(content)
    }
}

impl<R: Read> Read for TarReader<R> {
    /// Reads the content of the present member as it is stored.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(buffer.len()).min(buffer.len());
        let read = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left = self.left.saturating_sub(read as u64);
        self.position = self.position.saturating_add(read as u64);
        Ok(read)
    }
}

fn retried(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize, TarError> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(TarError::Read),
        }
    }
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK).saturating_sub(size)
}
