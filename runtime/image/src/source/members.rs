//! The members of an archive with an image.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    os::unix::fs::FileExt as _,
    path::Path,
};

use crate::{
    error::{ImageError, is_of_host},
    limits::MAX_MEMBERS,
    shown::shown,
    tar::{Member, MemberKind, TarError, TarReader},
};

/// The most links from one member to another on the way to a file. Docker writes one.
const MAX_LINKS: usize = 4;

/// The files and links of an archive, by name.
#[derive(Debug, Default)]
pub(super) struct Members(BTreeMap<String, Found>);

#[derive(Debug)]
enum Found {
    File { from: u64, size: u64 },
    Link(String),
    Directory,
}

impl Members {
    /// Reads the headers of an archive, and no content.
    pub(super) fn read(file: &File, length: u64, path: &Path) -> Result<Self, ImageError> {
        let failed = |error: TarError| match error {
            TarError::Read(error) if is_of_host(&error) => ImageError::read(path)(error),
            other => ImageError::NotAnImage(format!("it is read as an archive: {other}")),
        };
        let mut tar = TarReader::new(Positioned { file, at: 0, length });
        let (mut members, mut count) = (BTreeMap::new(), 0);
        while let Some(member) = tar.next().map_err(failed)? {
            count += 1;
            if count > MAX_MEMBERS {
                return Err(ImageError::NotAnImage(format!(
                    "the archive has more than {MAX_MEMBERS} members"
                )));
            }
            let found = found(&member, tar.position())
                .map_err(|reason| failed(TarError::entry(&member.path, reason)))?;
            let is_directory = matches!(found, Found::Directory);
            if let Some(before) = members.insert(member.path.clone(), found)
                && !(is_directory && matches!(before, Found::Directory))
            {
                return Err(failed(TarError::entry(&member.path, "it is in the archive twice")));
            }
            tar.skip_by(|source, bytes| source.skip(bytes)).map_err(failed)?;
        }
        Ok(Self(members))
    }

    /// Returns the place of a file in the archive: its offset and size.
    pub(super) fn find(&self, name: &str) -> Result<Option<(u64, u64)>, ImageError> {
        let bad = |reason: &str| ImageError::NotAnImage(format!("its member {} {reason}", shown(name)));
        let mut at = name.to_owned();
        for _ in 0..=MAX_LINKS {
            match self.0.get(&at) {
                None => return Ok(None),
                Some(Found::File { from, size }) => return Ok(Some((*from, *size))),
                Some(Found::Directory) => return Err(bad("is a directory")),
                Some(Found::Link(target)) => at.clone_from(target),
            }
        }
        Err(bad("is a link to a link, and so on"))
    }
}

fn found(member: &Member, from: u64) -> Result<Found, &'static str> {
    match &member.kind {
        MemberKind::File if member.pieces.is_some() => Err("it is sparse"),
        MemberKind::File => Ok(Found::File { from, size: member.size }),
        MemberKind::Directory => Ok(Found::Directory),
        MemberKind::HardLink(of) => Ok(Found::Link(of.clone())),
        MemberKind::Link(target) => {
            joined(&member.path, target).map(Found::Link).ok_or("it links out of the archive")
        }
        MemberKind::Special(_) => Err("it is neither a file nor a directory"),
    }
}

/// Returns the member that a link names: its text, from the directory that the link is in.
fn joined(path: &str, target: &str) -> Option<String> {
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let mut names: Vec<&str> = if target.starts_with('/') { Vec::new() } else { above.split('/').collect() };
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    names.retain(|name| !name.is_empty());
    Some(names.join("/"))
}

/// A file that is read from a position.
struct Positioned<'a> {
    file: &'a File,
    at: u64,
    length: u64,
}

impl Positioned<'_> {
    /// Moves on, and not behind the end: a content that is not there is an error.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let at = self.at.checked_add(bytes).filter(|at| *at <= self.length);
        self.at = at.ok_or_else(|| crate::verified::refused("it ends within a file"))?;
        Ok(())
    }
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_name_members_and_do_not_leave_the_archive() {
        let target = |path, target| joined(path, target);
        assert_eq!(target("a/layer.tar", "../b/layer.tar").as_deref(), Some("b/layer.tar"));
        assert_eq!(target("a", "b").as_deref(), Some("b"));
        assert_eq!(target("a/b", "/c").as_deref(), Some("c"));
        assert_eq!(target("a/b", "../../c"), None);
    }
}
