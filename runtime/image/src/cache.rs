//! A directory of unpacked layers, each once, by the digest of its tar.

mod kept;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;

use crate::{
    error::ImageError,
    image::{Image, ImageSource},
    limits::Budget,
    scan::{DiskTree, check_file_system, remove_tree},
    table::{LayerTable, MergedTable, merge},
};

/// The directory of a layer's files, in its own.
const FILES: &str = "files";

/// The file of a layer's table.
const TABLE: &str = "table.json";

/// Returns the directory of a layer's files in a cache, by the digest of its tar.
#[must_use]
pub fn layer_files(cache: &Path, diff_id: Digest) -> PathBuf {
    cache.join(diff_id.to_string()).join(FILES)
}

/// The beginning of names of directories that are not finished.
const STAGING: &str = ".new-";

/// Unpacked layers below one directory, which one process uses at a time and no other user can read.
#[derive(Debug)]
pub struct LayerCache {
    directory: PathBuf,
    /// Holds the lock for as long as the cache is open.
    _lock: File,
}

/// An image whose layers are in a cache.
#[derive(Debug)]
pub struct UnpackedImage {
    /// The layers, the lowest first.
    pub layers: Vec<UnpackedLayer>,
    /// The layers as they lie on each other.
    pub merged: MergedTable,
}

/// A layer in a cache.
#[derive(Debug)]
pub struct UnpackedLayer {
    /// The digest of its tar.
    pub diff_id: Digest,
    /// The directory of its files: a lower directory of an overlay that is mounted with `userxattr`. Nothing may write in
    /// it.
    pub files: PathBuf,
    /// Its entries, with owners and modes as the image has them.
    pub table: LayerTable,
}

impl LayerCache {
    /// Opens a cache, makes it if there is none, and removes what an interrupted process left.
    ///
    /// # Errors
    /// [`ImageError::Write`] if the directory cannot be used: another process has it open, for example.
    pub fn open(directory: &Path) -> Result<Self, ImageError> {
        use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
        let failed = || ImageError::write(directory);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(directory).map_err(failed())?;
        // Files of strangers, some of which all may write, are for no other user of this host.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).map_err(failed())?;
        let lock = File::options().write(true).create(true).truncate(false).open(directory.join(".lock"));
        let lock = lock.map_err(failed())?;
        lock.try_lock().map_err(|error| match error {
            fs::TryLockError::WouldBlock => failed()(io::Error::other("another process uses it")),
            fs::TryLockError::Error(error) => failed()(error),
        })?;
        check_file_system(directory).map_err(|reason| failed()(io::Error::other(reason)))?;
        for entry in fs::read_dir(directory).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if entry.file_name().to_string_lossy().starts_with(STAGING) {
                remove_tree(&entry.path()).map_err(failed())?;
            }
        }
        Ok(Self { directory: directory.to_owned(), _lock: lock })
    }

    /// Unpacks the layers of an image that are not in the cache.
    ///
    /// # Errors
    /// [`ImageError`]. No part of a layer that is refused stays.
    pub fn unpack(&self, file: &ImageSource, image: &Image) -> Result<UnpackedImage, ImageError> {
        let mut budget = Budget::new(file.limits());
        let mut layers = Vec::new();
        for (index, layer) in image.layers.iter().enumerate() {
            let kept = self.kept(layer.diff_id, &mut budget)?;
            layers.push(match kept {
                Some(kept) => kept,
                None => self.unpack_layer(file, image, (index + 1, layer.diff_id), &mut budget)?,
            });
        }
        let merged = merge(layers.iter().map(|layer| &layer.table)).map_err(ImageError::Layers)?;
        Ok(UnpackedImage { layers, merged })
    }

    /// Removes the layers that no image needs. Returns their number.
    ///
    /// # Errors
    /// [`ImageError::Write`]
    pub fn retain(&self, needed: impl Fn(Digest) -> bool) -> Result<usize, ImageError> {
        let mut removed = 0;
        for diff_id in self.layers()? {
            if !needed(diff_id) {
                let path = self.place(diff_id);
                // The name goes first, so that no half of a layer has it.
                let going = self.staging()?;
                let target = going.join("going");
                fs::rename(&path, &target).map_err(ImageError::write(&path))?;
                remove_tree(&going).map_err(ImageError::write(&going))?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the digests of all layers.
    ///
    /// # Errors
    /// [`ImageError::Read`]
    pub fn layers(&self) -> Result<Vec<Digest>, ImageError> {
        let failed = || ImageError::read(&self.directory);
        let mut layers = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(failed())? {
            let name = entry.map_err(failed())?.file_name();
            layers.extend(name.to_str().and_then(|name| name.parse::<Digest>().ok()));
        }
        layers.sort();
        Ok(layers)
    }

    fn place(&self, diff_id: Digest) -> PathBuf {
        self.directory.join(diff_id.to_string())
    }

    /// Makes a directory that is removed at the next start, at the latest.
    fn staging(&self) -> Result<PathBuf, ImageError> {
        let made = tempfile::Builder::new().prefix(STAGING).tempdir_in(&self.directory);
        Ok(made.map_err(ImageError::write(&self.directory))?.keep())
    }

    /// Returns a layer that is in the cache, and counts it as if it was unpacked.
    fn kept(&self, diff_id: Digest, budget: &mut Budget) -> Result<Option<UnpackedLayer>, ImageError> {
        let place = self.place(diff_id);
        let Some(table) = kept::read(&place.join(TABLE))? else { return Ok(None) };
        for (path, entry) in &table.entries {
            let size = match entry.kind {
                crate::table::EntryKind::File { size } => size,
                _ => 0,
            };
            let refused =
                |reason: String| ImageError::Layers(format!("{}: {reason}", crate::shown::shown(path)));
            budget.take(size).map_err(refused)?;
        }
        Ok(Some(UnpackedLayer { diff_id, files: place.join(FILES), table }))
    }

    fn unpack_layer(
        &self,
        file: &ImageSource,
        image: &Image,
        (number, diff_id): (usize, Digest),
        budget: &mut Budget,
    ) -> Result<UnpackedLayer, ImageError> {
        let staging = Staging(self.staging()?);
        let files = staging.0.join(FILES);
        fs::create_dir(&files).map_err(ImageError::write(&files))?;
        let failed = || ImageError::write(&files);
        let mut tree = DiskTree::open(&files).map_err(failed())?;
        let table = file.layer(image, number, budget, Some((&mut tree, &files)))?;
        kept::write(&staging.0.join(TABLE), &table)?;
        tree.sync().map_err(failed())?;
        let place = self.place(diff_id);
        // A directory of that name without a table that can be read is of another version of this program.
        remove_tree(&place).map_err(ImageError::write(&place))?;
        fs::rename(&staging.0, &place).map_err(ImageError::write(&place))?;
        Ok(UnpackedLayer { diff_id, files: place.join(FILES), table })
    }
}

/// A directory that is removed unless it was renamed.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the cache is opened again.
        let _ = remove_tree(&self.0);
    }
}
