//! A backup with those that it builds on.

use std::{
    io,
    path::{Path, PathBuf},
};

use periapt_host_api::backup::{BaseBackup, MAX_DEPTH, WrappingKey};

use super::{
    error::BackupError,
    manifest::BackupManifest,
    read::{BackupFile, BackupSummary},
};

/// A backup with those that it builds on, of which only the manifests were read.
#[derive(Debug)]
pub struct BackupChain {
    /// The backup that is restored.
    pub(super) newest: BackupFile,
    /// The backups that it builds on, each followed by the one that it builds on itself.
    pub(super) bases: Vec<BackupFile>,
}

impl BackupChain {
    /// Opens a backup, and finds those that it builds on: among the given files, and in its own directory under the name
    /// that they had.
    ///
    /// # Errors
    /// [`BackupError::NoBase`] and [`BackupError::UnusedBase`]; and a file cannot be read, or is no backup.
    pub fn at(path: &Path, given: &[PathBuf]) -> Result<Self, BackupError> {
        let newest = BackupFile::at(path)?;
        let mut given = given.iter().map(|path| BackupFile::at(path)).collect::<Result<Vec<_>, _>>()?;
        let mut bases: Vec<BackupFile> = Vec::new();
        loop {
            let last = bases.last().unwrap_or(&newest);
            let Some(base) = &last.manifest().base else { break };
            // A base has the depth that the backup tells, which is one less than the backup's own: so the search ends.
            if base.depth >= MAX_DEPTH {
                return Err(last.entries.damaged("it builds on too many other backups"));
            }
            let next = match given.iter().position(|file| is_base(file.manifest(), base)) {
                Some(at) => given.swap_remove(at),
                None => beside(last, base)?,
            };
            bases.push(next);
        }
        match given.pop() {
            Some(unused) => Err(BackupError::UnusedBase(unused.entries.path().to_owned())),
            None => Ok(Self { newest, bases }),
        }
    }

    /// Returns the manifest of the backup that is restored.
    pub fn manifest(&self) -> &BackupManifest {
        self.newest.manifest()
    }

    /// Reads all files to their ends, and checks that each is whole, that each is the one that the next newer one builds
    /// on, that none lacks a part that a newer one leaves out, and that a key opens the keys. Writes nothing.
    ///
    /// # Errors
    /// A file is damaged, incomplete or another one, or the key is.
    pub async fn verify(self, key: Option<&WrappingKey>) -> Result<BackupSummary, BackupError> {
        let mut path = self.newest.entries.path().to_owned();
        let summary = self.newest.verify(key).await?;
        let (mut needed, mut expected) = (summary.unchanged.clone(), summary.manifest.base.clone());
        for base in self.bases {
            let base_path = base.entries.path().to_owned();
            let found = base.verify(None).await?;
            if expected.is_none_or(|expected| expected.digest != found.digest) {
                return Err(BackupError::OtherBase { path, base: base_path });
            }
            needed.retain(|name, digest| found.own.get(name) != Some(digest));
            let lacks = |(name, digest): &(&_, &_)| found.unchanged.get(*name) != Some(*digest);
            if let Some((name, _)) = needed.iter().find(lacks) {
                let what = format!("it lacks {name}, which a newer backup leaves out");
                return Err(BackupError::Damaged { path: base_path, what });
            }
            (expected, path) = (found.manifest.base, base_path);
        }
        Ok(summary)
    }
}

/// Returns true if a manifest is that of a base. The digest is compared once the file was read.
fn is_base(manifest: &BackupManifest, base: &BaseBackup) -> bool {
    (manifest.store, manifest.revision, manifest.depth()) == (base.store, base.revision, base.depth)
}

/// Opens the base of a backup beside it.
fn beside(backup: &BackupFile, base: &BaseBackup) -> Result<BackupFile, BackupError> {
    let path = backup.entries.path();
    let missing = || BackupError::NoBase {
        path: path.to_owned(),
        base: base.filename.clone(),
        revision: base.revision,
    };
    // The name comes from the file: it leads to no other directory.
    let name = Path::new(&base.filename).file_name().ok_or_else(missing)?;
    match BackupFile::at(&path.with_file_name(name)) {
        Ok(file) if !is_base(file.manifest(), base) => Err(missing()),
        Err(BackupError::Unreadable { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Err(missing())
        }
        found => found,
    }
}
