//! Files with images: the members of an OCI layout, as a directory or in an archive, or of Docker's archive.

mod members;

use std::{
    fs::File,
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use crate::{error::ImageError, limits::MAX_DOCUMENT, verified::VerifiedBlob};
use members::Members;

/// The first bytes of compressed files.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// A place with the parts of images. Nothing in it is trusted.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Directory(OwnedFd),
    Archive { file: File, members: Members },
}

/// A member of a source, to be read from its beginning.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    from: u64,
    pub(crate) size: u64,
    at: u64,
}

/// Returns the kind and the size of an open file. The standard library asks by a call that also takes names, which a helper
/// may not make.
fn kind_and_size(file: &File) -> io::Result<(FileType, u64)> {
    let status = fstat(file)?;
    Ok((FileType::from_raw_mode(status.st_mode), u64::try_from(status.st_size).unwrap_or_default()))
}

impl Source {
    /// Opens a directory or an archive. Of an archive, the headers of all members are read.
    pub(crate) fn open(path: &Path) -> Result<Self, ImageError> {
        let read = || ImageError::read(path);
        // A named pipe would keep this process waiting.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat(CWD, path, flags, Mode::empty()).map_err(|error| read()(error.into()))?;
        Self::of(File::from(opened), path)
    }

    /// Takes an open directory or archive. The path is for errors alone.
    pub(crate) fn of(file: File, path: &Path) -> Result<Self, ImageError> {
        let read = || ImageError::read(path);
        let (found, size) = kind_and_size(&file).map_err(read())?;
        let kind = if found == FileType::Directory {
            Kind::Directory(file.into())
        } else if found == FileType::RegularFile {
            let mut start = [0; 4];
            let length = file.read_at(&mut start, 0).map_err(read())?;
            let start = start.get(..length).unwrap_or_default();
            for (magic, program) in [(GZIP, "gunzip"), (ZSTD, "unzstd")] {
                if start.starts_with(magic) {
                    let reason = format!("the file is compressed as a whole: unpack it with {program} first");
                    return Err(ImageError::NotAnImage(reason));
                }
            }
            let members = Members::read(&file, size, path)?;
            Kind::Archive { file, members }
        } else {
            return Err(ImageError::NotAnImage("it is neither a file nor a directory".into()));
        };
        Ok(Self { path: path.to_owned(), kind })
    }

    /// Opens a member. `None` means that there is no such member.
    pub(crate) fn part(&self, name: &str) -> Result<Option<Part>, ImageError> {
        let (file, from, size) = match &self.kind {
            Kind::Directory(directory) => {
                let below = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let opened = match openat2(directory, name, flags, Mode::empty(), below) {
                    Ok(opened) => opened,
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
                    Err(rustix::io::Errno::LOOP) => {
                        return Err(ImageError::NotAnImage(format!(
                            "its {name} is a link, and links are not followed"
                        )));
                    }
                    Err(error) => return Err(ImageError::read(&self.path.join(name))(error.into())),
                };
                let file = File::from(opened);
                let (found, size) = kind_and_size(&file).map_err(ImageError::read(&self.path.join(name)))?;
                if found != FileType::RegularFile {
                    return Err(ImageError::NotAnImage(format!("its {name} is no file")));
                }
                (file, 0, size)
            }
            Kind::Archive { file, members } => {
                let Some((from, size)) = members.find(name)? else { return Ok(None) };
                (file.try_clone().map_err(ImageError::read(&self.path))?, from, size)
            }
        };
        Ok(Some(Part { file, from, size, at: 0 }))
    }

    /// Returns the place of a member in an archive: its offset and its size, in bytes. A directory has no places.
    pub(crate) fn place(&self, name: &str) -> Result<Option<(u64, u64)>, ImageError> {
        match &self.kind {
            Kind::Directory(_) => Ok(None),
            Kind::Archive { members, .. } => members.find(name),
        }
    }

    /// Reads a document that nothing names by digest. `None` means that there is none.
    pub(crate) fn document(&self, name: &str) -> Result<Option<Vec<u8>>, ImageError> {
        let Some(part) = self.part(name)? else { return Ok(None) };
        if part.size > MAX_DOCUMENT {
            return Err(ImageError::document(
                name,
                format!("it has {} bytes, and may have 4 MiB", part.size),
            ));
        }
        let mut content = Vec::new();
        part.take(MAX_DOCUMENT).read_to_end(&mut content).map_err(ImageError::read(&self.path))?;
        Ok(Some(content))
    }

    /// Opens the blob of a digest. Its size is that of its descriptor, which the reader checks with the digest.
    pub(crate) fn blob(&self, what: &'static str, digest: Digest) -> Result<Part, ImageError> {
        let missing = || ImageError::Blob { part: what, digest, reason: "it is missing".into() };
        self.part(&format!("blobs/sha256/{digest}"))?.ok_or_else(missing)
    }

    /// Reads a document and checks its digest and size.
    pub(crate) fn verified(
        &self,
        what: &'static str,
        digest: Digest,
        size: u64,
    ) -> Result<Vec<u8>, ImageError> {
        let bad = |reason: String| ImageError::Blob { part: what, digest, reason };
        if size > MAX_DOCUMENT {
            return Err(bad(format!("it has {size} bytes, and may have 4 MiB")));
        }
        let mut content = Vec::new();
        let mut blob = VerifiedBlob::new(self.blob(what, digest)?, Some(digest), size);
        match blob.read_to_end(&mut content) {
            Ok(_) => Ok(content),
            Err(error) if crate::error::is_of_host(&error) => Err(ImageError::read(&self.path)(error)),
            Err(error) => Err(bad(error.to_string())),
        }
    }
}

impl Part {
    /// Returns the first bytes, without moving on.
    pub(crate) fn start(&self) -> io::Result<[u8; 4]> {
        let mut start = [0; 4];
        let most = usize::try_from(self.size).unwrap_or(4).min(4);
        self.file.read_at(start.get_mut(..most).unwrap_or_default(), self.from)?;
        Ok(start)
    }

    /// Returns true for bytes that gzip compressed.
    pub(crate) fn is_gzip(&self) -> io::Result<bool> {
        Ok(self.start()?.starts_with(GZIP))
    }

    /// Returns true for bytes that zstd compressed.
    pub(crate) fn is_zstd(&self) -> io::Result<bool> {
        Ok(self.start()?.starts_with(ZSTD))
    }
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.size.saturating_sub(self.at);
        let most = usize::try_from(left).unwrap_or(buffer.len()).min(buffer.len());
        let offset = self.from.saturating_add(self.at);
        let read = self.file.read_at(buffer.get_mut(..most).unwrap_or_default(), offset)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}
