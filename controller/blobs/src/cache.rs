//! Blobs of a shared store that this controller has read, in files of its own, up to a bound. A file is used only after its
//! bytes were checked by this process.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::BlobError;

/// The mark in the names of unfinished files.
const UNFINISHED: &str = ".new-";

/// The name of a blob: its namespace and its digest.
pub(crate) type Name = (&'static str, Digest);

/// The namespaces, whose files are kept over a restart.
const NAMESPACES: [&str; 2] = ["charms", "resources"];

/// The cache. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    /// The most bytes of all files, unless one alone is larger.
    limit: u64,
    index: Mutex<Index>,
    /// One lock for each blob that is being fetched.
    fetching: Mutex<BTreeMap<Name, Weak<tokio::sync::Mutex<()>>>>,
}

#[derive(Debug, Default)]
struct Index {
    files: BTreeMap<Name, CachedFile>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug)]
struct CachedFile {
    size: u64,
    last_use: u64,
    is_checked: bool,
}

impl Cache {
    /// Opens the cache in a directory, or makes it.
    pub(crate) fn open(directory: &Path, limit: u64) -> Result<Self, BlobError> {
        let failed = |source| BlobError::Directory { directory: directory.display().to_string(), source };
        let index = found(directory).map_err(failed)?;
        let cache = Self(Arc::new(Inner {
            directory: directory.to_owned(),
            limit,
            index: Mutex::new(index),
            fetching: Mutex::default(),
        }));
        cache.evict(None);
        Ok(cache)
    }

    /// Returns a file for a blob that is being fetched. It is removed with the value.
    pub(crate) fn unfinished(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.0.directory)
    }

    /// Returns the lock of those who want to fetch a blob.
    pub(crate) fn fetching(&self, name: Name) -> Arc<tokio::sync::Mutex<()>> {
        let mut fetching = self.0.fetching.lock();
        fetching.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = fetching.get(&name).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        fetching.insert(name, Arc::downgrade(&lock));
        lock
    }

    /// Opens a blob's file; none if there is none with the blob's bytes. Blocks.
    pub(crate) fn get(&self, name: Name) -> Option<(fs::File, u64)> {
        let (size, is_checked) = {
            let mut index = self.0.index.lock();
            index.uses += 1;
            let now = index.uses;
            let file = index.files.get_mut(&name)?;
            file.last_use = now;
            (file.size, file.is_checked)
        };
        let opened = fs::File::open(self.path(name)).and_then(|mut file| {
            // A crash may have left fewer bytes, and a disk other ones.
            let is_whole = is_checked || has_digest(&mut file, &name.1)?;
            Ok(is_whole.then_some(file))
        });
        match opened {
            Ok(Some(file)) => {
                if let Some(known) = self.0.index.lock().files.get_mut(&name) {
                    known.is_checked = true;
                }
                Some((file, size))
            }
            Ok(None) | Err(_) => {
                self.forget(name);
                None
            }
        }
    }

    /// Keeps a file whose bytes were checked, and removes those that were not used for the longest time, down to the
    /// bound. Blocks.
    pub(crate) fn keep(&self, name: Name, file: NamedTempFile, size: u64) -> io::Result<fs::File> {
        let file = file.persist(self.path(name)).map_err(|error| error.error)?;
        let mut index = self.0.index.lock();
        index.uses += 1;
        let kept = CachedFile { size, last_use: index.uses, is_checked: true };
        let replaced = index.files.insert(name, kept).map_or(0, |before| before.size);
        index.bytes = index.bytes + size - replaced;
        drop(index);
        self.evict(Some(name));
        Ok(file)
    }

    fn evict(&self, newest: Option<Name>) {
        let mut index = self.0.index.lock();
        while index.bytes > self.0.limit {
            let others = index.files.iter().filter(|(name, _)| Some(**name) != newest);
            let Some(oldest) = others.min_by_key(|(_, file)| file.last_use).map(|(name, _)| *name) else {
                return;
            };
            self.remove(&mut index, oldest);
        }
    }

    fn forget(&self, name: Name) {
        self.remove(&mut self.0.index.lock(), name);
    }

    fn remove(&self, index: &mut Index, name: Name) {
        if let Some(file) = index.files.remove(&name) {
            index.bytes -= file.size;
        }
        // Readers that have opened it go on.
        if let Err(error) = fs::remove_file(self.path(name))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "a file of the cache of blobs cannot be removed");
        }
    }

    fn path(&self, (namespace, digest): Name) -> PathBuf {
        self.0.directory.join(format!("{namespace}-{digest}"))
    }
}

/// Returns the files that an earlier process has left, the oldest first in use.
fn found(directory: &Path) -> io::Result<Index> {
    fs::create_dir_all(directory)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(UNFINISHED) {
            fs::remove_file(entry.path())?;
            continue;
        }
        let Some((namespace, digest)) = name.split_once('-') else { continue };
        let Some(namespace) = NAMESPACES.into_iter().find(|known| *known == namespace) else { continue };
        let Ok(digest) = digest.parse() else { continue };
        let meta = entry.metadata()?;
        files.push((meta.modified()?, (namespace, digest), meta.len()));
    }
    files.sort();
    let mut index = Index::default();
    for (_, name, size) in files {
        index.uses += 1;
        index.bytes += size;
        index.files.insert(name, CachedFile { size, last_use: index.uses, is_checked: false });
    }
    Ok(index)
}

fn has_digest(file: &mut fs::File, digest: &Digest) -> io::Result<bool> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        let read = io::Read::read(file, &mut piece)?;
        if read == 0 {
            return Ok(Digest::from_bytes(hasher.finalize().into()) == *digest);
        }
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    fn keep(cache: &Cache, content: &[u8]) -> Name {
        let name = ("charms", Digest::of(content));
        let mut file = cache.unfinished().unwrap();
        file.write_all(content).unwrap();
        cache.keep(name, file, content.len() as u64).unwrap();
        name
    }

    fn read(cache: &Cache, name: Name) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        let (mut file, size) = cache.get(name)?;
        io::Seek::rewind(&mut file).unwrap();
        file.read_to_end(&mut content).unwrap();
        assert_eq!(content.len() as u64, size);
        Some(content)
    }

    #[test]
    fn the_files_that_were_not_used_for_the_longest_time_go_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), 10).unwrap();
        let (one, two) = (keep(&cache, b"11111"), keep(&cache, b"22222"));
        assert_eq!(read(&cache, one).unwrap(), b"11111");
        let three = keep(&cache, b"33333");
        assert_eq!(read(&cache, two), None);
        assert!(read(&cache, one).is_some() && read(&cache, three).is_some());
        let large = keep(&cache, b"larger than the bound");
        assert!(read(&cache, large).is_some(), "one alone may be larger");
        assert!(read(&cache, one).is_none() && read(&cache, three).is_none());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_stay_over_a_restart_and_damaged_and_unfinished_ones_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), 100).unwrap();
        let (whole, damaged) = (keep(&cache, b"whole"), keep(&cache, b"damaged"));
        fs::write(cache.path(damaged), b"damageD").unwrap();
        fs::write(directory.path().join(".new-1"), b"half").unwrap();
        drop(cache);
        let cache = Cache::open(directory.path(), 100).unwrap();
        assert_eq!(read(&cache, whole).unwrap(), b"whole");
        assert_eq!(read(&cache, damaged), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(cache);
        let cache = Cache::open(directory.path(), 4).unwrap();
        assert_eq!(read(&cache, whole), None, "the bound is smaller now");
    }
}
