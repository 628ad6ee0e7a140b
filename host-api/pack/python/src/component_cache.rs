//! A cache of built components, by the digest of their inputs.
//!
//! Each build of `componentize-py` gives other bytes: the tool draws the interpreter's hash seed and reads the clock.
//! The cache makes repeated packing of the same sources give the same charm.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;

use crate::tools::COMPONENTIZE;

/// The most cached components, of 32 MB each: enough for an author who works on a few charms.
const MOST: usize = 4;

/// The cache's directory.
#[derive(Debug, Clone)]
pub(crate) struct ComponentCache {
    directory: PathBuf,
}

impl ComponentCache {
    pub(crate) fn new(cache: &Path) -> Self {
        Self { directory: cache.join("python/components") }
    }

    /// Returns the component that was built from a stage, if it is cached.
    pub(crate) fn of(&self, stage: Digest) -> Option<PathBuf> {
        Some(self.place(stage)).filter(|place| place.is_file())
    }

    /// Adds a component at once or not at all, and removes the oldest beyond [`MOST`].
    pub(crate) fn add(&self, stage: Digest, component: &Path) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let mut beside = tempfile::NamedTempFile::new_in(&self.directory)?;
        io::copy(&mut fs::File::open(component)?, &mut beside)?;
        beside.persist(self.place(stage))?;
        let mut cached = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            // Unfinished files of other packers have other names.
            if path.extension().is_some_and(|extension| extension == "wasm") {
                cached.extend(unless_gone(path.metadata().and_then(|meta| meta.modified()))?.zip(Some(path)));
            }
        }
        cached.sort();
        for (_, oldest) in cached.iter().rev().skip(MOST) {
            unless_gone(fs::remove_file(oldest))?;
        }
        Ok(())
    }

    fn place(&self, stage: Digest) -> PathBuf {
        self.directory.join(format!("{stage}.wasm"))
    }
}

/// Returns `None` for a file that another packer has removed meanwhile.
fn unless_gone<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}

/// Returns the digest of a component's inputs: the tool's version and all files of the stage.
pub(crate) fn digest_of(stage: &Path) -> io::Result<Digest> {
    let mut text = Vec::new();
    let mut add = |part: &[u8]| {
        text.extend_from_slice(&(part.len() as u64).to_le_bytes());
        text.extend_from_slice(part);
    };
    add(COMPONENTIZE.as_bytes());
    for path in files_of(stage)? {
        add(path.strip_prefix(stage).unwrap_or(&path).as_os_str().as_encoded_bytes());
        add(&fs::read(&path)?);
    }
    Ok(Digest::of(&text))
}

/// Returns all files below a directory in order, without Python's compiled caches.
fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true if entry.file_name() == "__pycache__" => {}
                true => waiting.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Creates a stage with files.
    fn stage(files: &[(&str, &str)]) -> tempfile::TempDir {
        let stage = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = stage.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        stage
    }

    #[test]
    fn the_same_files_are_the_same_wherever_and_whenever_they_were_written() {
        let digest = |files: &[(&str, &str)]| digest_of(stage(files).path()).unwrap();
        let one = digest(&[("charm/a.py", "1"), ("charm/b/c.py", "2")]);
        assert_eq!(one, digest(&[("charm/b/c.py", "2"), ("charm/a.py", "1")]));
        assert_eq!(
            one,
            digest(&[("charm/a.py", "1"), ("charm/b/c.py", "2"), ("charm/b/__pycache__/c.pyc", "x")])
        );
        for other in [
            vec![("charm/a.py", "1")],
            vec![("charm/a.py", "1"), ("charm/b/c.py", "3")],
            vec![("charm/a.py", "1"), ("charm/b/d.py", "2")],
            vec![("charm/a.py", "1charm/b/c.py2")],
        ] {
            assert_ne!(one, digest(&other), "{other:?}");
        }
    }

    #[test]
    fn what_was_built_is_found_again_and_the_oldest_go() {
        let parent = tempfile::tempdir().unwrap();
        let cache = ComponentCache::new(parent.path());
        let component = parent.path().join("charm.wasm");
        let digests: Vec<_> = (0..=MOST).map(|number| Digest::of(&[number as u8])).collect();
        for (number, digest) in digests.iter().enumerate() {
            assert_eq!(cache.of(*digest), None);
            fs::write(&component, format!("built {number}")).unwrap();
            // An unfinished file of another packer.
            fs::create_dir_all(&cache.directory).unwrap();
            fs::write(cache.directory.join(format!(".tmp{number}")), "half").unwrap();
            cache.add(*digest, &component).unwrap();
            let place = cache.of(*digest).unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), format!("built {number}"));
            // Files of the same time would have no order.
            let then = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
            fs::File::options().append(true).open(&place).unwrap().set_modified(then).unwrap();
        }
        fs::write(&component, "again").unwrap();
        cache.add(digests[MOST], &component).unwrap();
        assert_eq!(cache.of(digests[0]), None);
        assert!(digests[1..].iter().all(|digest| cache.of(*digest).is_some()));
        assert_eq!(fs::read_dir(&cache.directory).unwrap().count(), MOST + digests.len());
    }
}
