//! One directory with the files of all layers, for hosts without overlays.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    cache::UnpackedImage,
    error::ImageError,
    scan::{DiskTree, remove_tree},
    table::{Below, EntryKind},
};

impl UnpackedImage {
    /// Copies what is seen of all layers to a new directory. Owners, and what a disk does not keep, are in
    /// [`merged`](Self::merged).
    ///
    /// # Errors
    /// [`ImageError::Write`] if the directory exists, or cannot be written. Nothing of it stays then.
    pub fn assemble(&self, target: &Path) -> Result<(), ImageError> {
        let failed = || ImageError::write(target);
        if target.symlink_metadata().is_ok() {
            return Err(failed()(io::Error::other("it exists already")));
        }
        let above = target.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(above).map_err(failed())?;
        let staging = Unfinished(staging.keep());
        let files = staging.0.join("root");
        fs::create_dir(&files).map_err(failed())?;
        self.copy(&files)?;
        fs::rename(&files, target).map_err(failed())
    }

    fn copy(&self, files: &Path) -> Result<(), ImageError> {
        let failed = || ImageError::write(files);
        let mut tree = DiskTree::open(files).map_err(failed())?;
        let mut lower = Vec::new();
        for layer in &self.layers {
            lower.push(DiskTree::open(&layer.files).map_err(ImageError::read(&layer.files))?);
        }
        // The first path that each file of a layer was copied to, by the path of its first name in the layer.
        let mut first: HashMap<(usize, &str), &str> = HashMap::new();
        for (path, (layer, entry)) in &self.merged.entries {
            let of = match &entry.kind {
                EntryKind::Directory { .. } if path.is_empty() => continue,
                EntryKind::Directory { .. } => {
                    tree.directory(path).map_err(failed())?;
                    continue;
                }
                EntryKind::Link { target } => {
                    tree.link(path, target, entry.time).map_err(failed())?;
                    continue;
                }
                EntryKind::Skipped { .. } | EntryKind::Whiteout => continue,
                EntryKind::File { .. } => path.as_str(),
                EntryKind::HardLink { of, .. } => of.as_str(),
            };
            if let Some(copied) = first.get(&(*layer, of)) {
                tree.hard_link(copied, path).map_err(failed())?;
                continue;
            }
            let (Some(from), Some(place)) = (lower.get_mut(*layer), self.layers.get(*layer)) else {
                return Err(ImageError::Layers(format!("there is no layer {}", layer + 1)));
            };
            let read = || ImageError::read(&place.files);
            let mut source = from.read(path).map_err(read())?;
            let size = source.metadata().map_err(read())?.len();
            let mut copy = tree.file(path).map_err(failed())?;
            io::copy(&mut source, &mut copy).map_err(failed())?;
            tree.finish_file(&copy, size, entry.mode_on_disk(), entry.time).map_err(failed())?;
            first.insert((*layer, of), path);
        }
        for (path, (_, entry)) in self.merged.entries.iter().rev() {
            if entry.is_directory() {
                let (mode, time) = (entry.mode_on_disk(), entry.time);
                tree.finish_directory(path, mode, time, Below::Shown).map_err(failed())?;
            }
        }
        Ok(())
    }
}

/// A directory that is removed with all that is in it.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A rest is named as unfinished, and harms nothing.
        let _ = remove_tree(&self.0);
    }
}
