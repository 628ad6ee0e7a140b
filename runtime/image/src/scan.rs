//! One layer: its stream, and its entries by the rules of layers.

mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufReader, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use periapt_host_api::Digest;

pub(crate) use tree::{DiskTree, remove_tree};

use crate::{
    limits::{Budget, ZSTD_WINDOW},
    table::{Below, DirectoryOrigin, EntryKind, LayerEntry, LayerTable, name, parent},
    tar::{Member, MemberKind, TarError, TarReader},
    verified::{BoundedStream, VerifiedBlob, refused},
};

/// The beginning of a name that marks what is gone.
const WHITEOUT: &str = ".wh.";

/// The name that marks a directory whose earlier content is gone.
const OPAQUE: &str = ".wh..wh..opq";

/// The compression of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerForm {
    /// Tar alone.
    Tar,
    /// Tar by gzip.
    Gzip,
    /// Tar by zstd.
    Zstd,
}

impl std::fmt::Display for LayerForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tar => "tar",
            Self::Gzip => "tar+gzip",
            Self::Zstd => "tar+zstd",
        })
    }
}

/// A layer's bytes as they are stored.
pub(crate) struct StoredLayer<R> {
    pub(crate) reader: R,
    /// The digest of these bytes, if the image names it.
    pub(crate) digest: Option<Digest>,
    pub(crate) size: u64,
    pub(crate) form: LayerForm,
    /// The digest of the unpacked tar.
    pub(crate) diff_id: Digest,
}

/// Reads a layer to its end, checks it, and writes it to a tree if there is one.
pub(crate) fn scan<R: Read>(
    layer: StoredLayer<R>,
    budget: &mut Budget,
    tree: Option<&mut DiskTree>,
) -> Result<LayerTable, TarError> {
    let StoredLayer { reader, digest, size, form, diff_id } = layer;
    let blob = BufReader::with_capacity(64 << 10, VerifiedBlob::new(reader, digest, size));
    match form {
        LayerForm::Tar => stream(blob, size, diff_id, budget, tree),
        LayerForm::Gzip => stream(MultiGzDecoder::new(blob), size, diff_id, budget, tree),
        LayerForm::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(blob).map_err(TarError::Read)?;
            decoder.window_log_max(ZSTD_WINDOW).map_err(TarError::Read)?;
            stream(decoder, size, diff_id, budget, tree)
        }
    }
}

/// Reads a layer from its decoder. All decoders read their source to its end, where the blob's digest is checked.
fn stream(
    decoder: impl Read,
    stored: u64,
    diff_id: Digest,
    budget: &mut Budget,
    mut tree: Option<&mut DiskTree>,
) -> Result<LayerTable, TarError> {
    let mut stream = BoundedStream::new(decoder, stored, budget);
    let mut scan = Scan { table: LayerTable::default(), whiteouts: BTreeSet::new(), opaque: BTreeSet::new() };
    scan.entries(&mut TarReader::new(&mut stream), budget, tree.as_deref_mut())?;
    let found = stream.finish().map_err(TarError::Read)?;
    if found != diff_id {
        return Err(TarError::Read(refused(format!("it unpacks to another layer, sha256:{found}"))));
    }
    scan.finish(tree)
}

struct Scan {
    table: LayerTable,
    whiteouts: BTreeSet<String>,
    opaque: BTreeSet<String>,
}

impl Scan {
    fn entries(
        &mut self,
        tar: &mut TarReader<impl Read>,
        budget: &mut Budget,
        mut tree: Option<&mut DiskTree>,
    ) -> Result<(), TarError> {
        while let Some(member) = tar.next()? {
            let size = match member.kind {
                MemberKind::File => member.size,
                _ => 0,
            };
            budget.take(size).map_err(|reason| TarError::entry(&member.path, reason))?;
            let bad = |reason: String| TarError::entry(&member.path, reason);
            let above = parent(&member.path).unwrap_or_default();
            if above.split('/').any(|name| name.starts_with(WHITEOUT)) {
                return Err(bad("it lies in a whiteout".into()));
            }
            if let Some(gone) = name(&member.path).strip_prefix(WHITEOUT) {
                self.whiteout(&member, gone).map_err(bad)?;
                self.imply(above, budget, tree.as_deref_mut())?;
                continue;
            }
            self.imply(above, budget, tree.as_deref_mut())?;
            self.entry(&member, tar, tree.as_deref_mut())?;
        }
        Ok(())
    }

    /// Notes what a whiteout removes. It takes effect once all entries are there: it concerns earlier layers alone.
    fn whiteout(&mut self, member: &Member, gone: &str) -> Result<(), String> {
        if member.kind != MemberKind::File || member.size > 0 {
            return Err("it is a whiteout and no empty file".into());
        }
        let above = parent(&member.path).unwrap_or_default();
        let is_new = if name(&member.path) == OPAQUE {
            self.opaque.insert(above.to_owned())
        } else if matches!(gone, "" | "." | "..") || gone.starts_with(WHITEOUT) {
            return Err("it is a whiteout of something that no layer can have".into());
        } else if above.is_empty() {
            self.whiteouts.insert(gone.to_owned())
        } else {
            self.whiteouts.insert(format!("{above}/{gone}"))
        };
        match is_new {
            true => Ok(()),
            false => Err("it is in the layer twice".into()),
        }
    }

    /// Makes the directories above an entry that the layer has not named.
    fn imply(
        &mut self,
        path: &str,
        budget: &mut Budget,
        mut tree: Option<&mut DiskTree>,
    ) -> Result<(), TarError> {
        let mut missing = Vec::new();
        let mut at = Some(path);
        while let Some(directory) = at {
            match self.table.entries.get(directory) {
                Some(entry) if entry.is_directory() => break,
                Some(_) => {
                    return Err(TarError::entry(
                        directory,
                        "there are files below it, and it is no directory",
                    ));
                }
                None => missing.push(directory),
            }
            at = parent(directory);
        }
        for directory in missing.into_iter().rev() {
            budget.take(0).map_err(|reason| TarError::entry(directory, reason))?;
            if let Some(tree) = tree.as_deref_mut().filter(|_| !directory.is_empty()) {
                tree.directory(directory).map_err(TarError::Write)?;
            }
            self.table.entries.insert(directory.to_owned(), LayerEntry::implied());
        }
        Ok(())
    }

    fn entry(
        &mut self,
        member: &Member,
        tar: &mut TarReader<impl Read>,
        tree: Option<&mut DiskTree>,
    ) -> Result<(), TarError> {
        let path = member.path.as_str();
        let bad = |reason: &'static str| TarError::entry(path, reason);
        let before = self.table.entries.get(path);
        if member.kind == MemberKind::Directory {
            if before.is_some_and(|before| !before.is_directory()) {
                return Err(bad("it is in the layer twice"));
            }
        } else if path.is_empty() {
            return Err(bad("the root is no directory"));
        } else if before.is_some() {
            return Err(bad("it is in the layer twice"));
        }
        let kind = match &member.kind {
            MemberKind::File => EntryKind::File { size: member.size },
            MemberKind::Directory => {
                EntryKind::Directory { below: Below::Shown, origin: DirectoryOrigin::Entry }
            }
            MemberKind::Link(target) => EntryKind::Link { target: target.clone() },
            MemberKind::Special(what) => EntryKind::Skipped { what: (*what).to_owned() },
            MemberKind::HardLink(of) => return self.hard_link(path, of, tree),
        };
        let entry = LayerEntry {
            kind,
            mode: member.mode,
            uid: member.uid,
            gid: member.gid,
            time: member.time,
            attributes: member.attributes.clone(),
        };
        if let Some(tree) = tree {
            write(tree, path, &entry, member, tar)?;
        }
        self.table.entries.insert(path.to_owned(), entry);
        Ok(())
    }

    fn hard_link(&mut self, path: &str, of: &str, tree: Option<&mut DiskTree>) -> Result<(), TarError> {
        let bad = |reason: &'static str| TarError::entry(path, reason);
        let Some(first) = self.table.entries.get(of) else {
            return Err(bad("it links to something that is not before it in the layer"));
        };
        let mut entry = first.clone();
        match &first.kind {
            EntryKind::File { size } => entry.kind = EntryKind::HardLink { of: of.to_owned(), size: *size },
            EntryKind::HardLink { .. } | EntryKind::Link { .. } | EntryKind::Skipped { .. } => {}
            EntryKind::Directory { .. } | EntryKind::Whiteout => return Err(bad("it links to a directory")),
        }
        if let Some(tree) = tree.filter(|_| !matches!(entry.kind, EntryKind::Skipped { .. })) {
            tree.hard_link(of, path).map_err(TarError::Write)?;
        }
        self.table.entries.insert(path.to_owned(), entry);
        Ok(())
    }

    /// Applies whiteouts, and gives directories their modes and times.
    fn finish(mut self, tree: Option<&mut DiskTree>) -> Result<LayerTable, TarError> {
        for path in std::mem::take(&mut self.whiteouts) {
            match self.table.entries.get_mut(&path) {
                // The layer has something of its own here: a directory that is new, with nothing of the earlier one.
                Some(LayerEntry { kind: EntryKind::Directory { below, origin }, .. }) => {
                    (*below, *origin) = (Below::Hidden, DirectoryOrigin::Entry);
                }
                Some(_) => {}
                None => {
                    let whiteout = LayerEntry { kind: EntryKind::Whiteout, mode: 0, ..LayerEntry::implied() };
                    self.table.entries.insert(path, whiteout);
                }
            }
        }
        for path in &self.opaque {
            if let Some(LayerEntry { kind: EntryKind::Directory { below, .. }, .. }) =
                self.table.entries.get_mut(path)
            {
                *below = Below::Hidden;
            }
        }
        if let Some(tree) = tree {
            mark(tree, &self.table.entries).map_err(TarError::Write)?;
        }
        Ok(self.table)
    }
}

fn write(
    tree: &mut DiskTree,
    path: &str,
    entry: &LayerEntry,
    member: &Member,
    tar: &mut TarReader<impl Read>,
) -> Result<(), TarError> {
    match &entry.kind {
        EntryKind::Directory { .. } if path.is_empty() => Ok(()),
        EntryKind::Directory { .. } => tree.directory(path).map_err(TarError::Write),
        EntryKind::Link { target } => tree.link(path, target, entry.time).map_err(TarError::Write),
        EntryKind::File { size } => {
            let file = tree.file(path).map_err(TarError::Write)?;
            tar.copy(member, |offset, piece| tree::write_at(&file, offset, piece))?;
            tree.finish_file(&file, *size, entry.mode_on_disk(), entry.time).map_err(TarError::Write)
        }
        // An overlay would show the earlier layer's file.
        EntryKind::Skipped { .. } => tree.whiteout(path).map_err(TarError::Write),
        EntryKind::HardLink { .. } | EntryKind::Whiteout => Ok(()),
    }
}

/// Marks what is gone as overlays expect it. Directories come last, from the deepest up: their modes may forbid writing,
/// and writing changes their times.
fn mark(tree: &mut DiskTree, entries: &BTreeMap<String, LayerEntry>) -> io::Result<()> {
    for (path, entry) in entries {
        if entry.kind == EntryKind::Whiteout {
            tree.whiteout(path)?;
        }
    }
    for (path, entry) in entries.iter().rev() {
        if let EntryKind::Directory { below, .. } = entry.kind {
            tree.finish_directory(path, entry.mode_on_disk(), entry.time, below)?;
        }
    }
    Ok(())
}

/// Checks that a directory can hold layers. The error says what its file system lacks.
pub(crate) fn check_file_system(directory: &Path) -> Result<(), String> {
    tree::check_file_system(directory)
}
