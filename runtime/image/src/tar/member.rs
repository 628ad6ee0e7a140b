//! One member of a tar: its header with the extensions before it.

use tar::Header;

use super::{
    TarError, is_link_target,
    pax::{records, time},
    relative,
    sparse::SparseForm,
};
use crate::limits::MAX_ATTRIBUTES;

/// The bits of a mode: permissions, set-user-id, set-group-id and sticky.
const MODE: u32 = 0o7777;

/// A member of a tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The path below the image's root, in its one form; the root is empty.
    pub(crate) path: String,
    pub(crate) kind: MemberKind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The time of the last change: seconds and nanoseconds.
    pub(crate) time: (i64, u32),
    /// The bytes of a file's content, with the holes of a sparse one.
    pub(crate) size: u64,
    /// The pieces of a sparse file: offsets and lengths.
    pub(crate) pieces: Option<Vec<(u64, u64)>>,
    /// The names of its extended attributes.
    pub(crate) attributes: Vec<String>,
    pub(super) sparse_form: Option<SparseForm>,
}

/// The kind of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MemberKind {
    File,
    Directory,
    /// A symbolic link with its text.
    Link(String),
    /// Another name of the file at a path.
    HardLink(String),
    /// A device, or a named pipe: its kind in words.
    Special(&'static str),
}

/// The extended headers before a member.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

/// A member's extended header in pax's form.
#[derive(Debug, Default)]
struct Pax {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    uid: Option<u64>,
    gid: Option<u64>,
    time: Option<(i64, u32)>,
    attributes: Vec<String>,
    sparse: SparseRecords,
}

/// The records of a sparse file in pax's form.
#[derive(Debug, Default)]
struct SparseRecords {
    version: (Option<String>, Option<String>),
    path: Option<Vec<u8>>,
    size: Option<u64>,
    older: bool,
}

impl Extensions {
    pub(super) fn is_empty(&self) -> bool {
        self.path.is_none() && self.link.is_none() && self.pax.is_none()
    }

    pub(super) fn long_path(&mut self, content: Vec<u8>) -> Result<(), TarError> {
        once(&mut self.path, text_of(content))
    }

    pub(super) fn long_link(&mut self, content: Vec<u8>) -> Result<(), TarError> {
        once(&mut self.link, text_of(content))
    }

    pub(super) fn pax(&mut self, content: &[u8]) -> Result<(), TarError> {
        let mut pax = Pax::default();
        for (key, value) in records(content)? {
            pax.take(key, value)?;
        }
        once(&mut self.pax, pax)
    }
}

impl Pax {
    fn take(&mut self, key: &str, value: &[u8]) -> Result<(), TarError> {
        let bad = TarError::Stream("an extended header has a value that is none");
        let text = || std::str::from_utf8(value).ok();
        let number = || text().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
        match key {
            "path" => once(&mut self.path, value.to_vec()),
            "linkpath" => once(&mut self.link, value.to_vec()),
            "size" => once(&mut self.size, number().ok_or(bad)?),
            "uid" => once(&mut self.uid, number().ok_or(bad)?),
            "gid" => once(&mut self.gid, number().ok_or(bad)?),
            "mtime" => once(&mut self.time, text().and_then(time).ok_or(bad)?),
            "GNU.sparse.major" => once(&mut self.sparse.version.0, text().ok_or(bad)?.to_owned()),
            "GNU.sparse.minor" => once(&mut self.sparse.version.1, text().ok_or(bad)?.to_owned()),
            "GNU.sparse.name" => once(&mut self.sparse.path, value.to_vec()),
            "GNU.sparse.realsize" => once(&mut self.sparse.size, number().ok_or(bad)?),
            other if other.starts_with("GNU.sparse.") => {
                self.sparse.older = true;
                Ok(())
            }
            other => {
                let name =
                    ["SCHILY.xattr.", "LIBARCHIVE.xattr."].iter().find_map(|of| other.strip_prefix(of));
                if let Some(name) = name {
                    if self.attributes.len() == MAX_ATTRIBUTES {
                        return Err(TarError::Stream("an entry has more than 64 extended attributes"));
                    }
                    self.attributes.push(name.to_owned());
                }
                Ok(())
            }
        }
    }
}

/// Sets a value that may be set once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), TarError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(TarError::Stream("an entry's extended headers say the same thing twice")),
    }
}

/// Returns the text of one of GNU's long names, which ends at the first byte of value 0.
fn text_of(mut content: Vec<u8>) -> Vec<u8> {
    let end = content.iter().position(|byte| *byte == 0).unwrap_or(content.len());
    content.truncate(end);
    content
}

impl Member {
    pub(super) fn of(header: &Header, size: u64, extensions: Extensions) -> Result<Self, TarError> {
        let Extensions { path: long_path, link: long_link, pax } = extensions;
        let Pax { path, link, size: own_size, uid, gid, time, mut attributes, sparse } =
            pax.unwrap_or_default();
        if (path.is_some() && long_path.is_some()) || (link.is_some() && long_link.is_some()) {
            return Err(TarError::Stream("an entry's extended headers say the same thing twice"));
        }
        let sparse_path = sparse.path.clone();
        let raw = sparse_path.or(path).or(long_path).unwrap_or_else(|| header.path_bytes().into_owned());
        let name = String::from_utf8(raw).map_err(|error| {
            TarError::entry(&String::from_utf8_lossy(error.as_bytes()), "its path is not UTF-8")
        })?;
        let bad = |reason: &'static str| TarError::entry(&name, reason);
        if own_size.is_some_and(|own| own != size) {
            return Err(bad("it has two sizes"));
        }
        let number = |own: Option<u64>, header: std::io::Result<u64>| {
            let value = own.map_or(header, Ok).map_err(|_| bad("its user or group is no number"))?;
            u32::try_from(value).map_err(|_| bad("its user or group is larger than 4294967295"))
        };
        let (uid, gid) = (number(uid, header.uid())?, number(gid, header.gid())?);
        let seconds = || {
            let seconds = header.mtime().map_err(|_| bad("its time is no number"))?;
            // Times before 1970 are in two's complement.
            Ok((i64::from_ne_bytes(seconds.to_ne_bytes()), 0))
        };
        let time = time.map_or_else(seconds, Ok)?;
        let target = || {
            let raw =
                link.or(long_link).or_else(|| header.link_name_bytes().map(std::borrow::Cow::into_owned));
            let target =
                String::from_utf8(raw.unwrap_or_default()).map_err(|_| bad("its link is not UTF-8"))?;
            match is_link_target(&target) {
                true => Ok(target),
                false => Err(bad("its link names nothing, or too much")),
            }
        };
        let is_pax_sparse =
            sparse.version.0.is_some() || sparse.version.1.is_some() || sparse.size.is_some() || sparse.older;
        let kind = match header.entry_type().as_byte() {
            // Programs of old marked directories by their name alone.
            0 | b'0' | b'7' if name.ends_with('/') => MemberKind::Directory,
            0 | b'0' | b'7' | b'S' => MemberKind::File,
            b'1' => MemberKind::HardLink(
                relative(&target()?).map_err(|_| bad("its link leads out of the image"))?,
            ),
            b'2' => MemberKind::Link(target()?),
            b'3' => MemberKind::Special("a character device"),
            b'4' => MemberKind::Special("a block device"),
            b'5' => MemberKind::Directory,
            b'6' => MemberKind::Special("a named pipe"),
            other => {
                return Err(TarError::entry(&name, format!("its kind {:?} is unknown", char::from(other))));
            }
        };
        if kind != MemberKind::File && size > 0 {
            return Err(bad("it is no file and has content"));
        }
        let sparse_form = match (header.entry_type().as_byte(), is_pax_sparse) {
            (b'S', false) => Some(SparseForm::Gnu),
            (b'S', true) => return Err(bad("it is sparse in two ways")),
            (_, false) => None,
            (_, true) if kind != MemberKind::File => return Err(bad("it is sparse and no file")),
            (_, true) => match (sparse.version.0.as_deref(), sparse.version.1.as_deref(), sparse.size) {
                (Some("1"), Some("0"), Some(size)) if !sparse.older => Some(SparseForm::Pax(size)),
                _ => return Err(bad("it is sparse in a form other than pax's 1.0")),
            },
        };
        let mode = header.mode().map_err(|_| bad("its mode is no number"))? & MODE;
        attributes.sort();
        attributes.dedup();
        let path = relative(&name).map_err(|reason| TarError::entry(&name, reason))?;
        Ok(Self { path, kind, mode, uid, gid, time, size, pieces: None, attributes, sparse_form })
    }
}
