//! The backup of which a new controller is made.

use std::path::Path;

use periapt_controller::{BackupChain, BackupKeys, RestoredKeys, StoppedController, derive_key};
use periapt_host_api::backup::KeySource;

use super::Bootstrap;
use crate::error::{Failure, Result, with_source};

/// The origin of a restored controller.
pub(super) enum Backup {
    /// A backup with the keys to it.
    File { chain: Box<BackupChain>, keys: RestoredKeys },
    /// The directory of a controller that has ended.
    Directory(Box<StoppedController>),
}

impl Bootstrap {
    /// Opens the backup, gets the keys to it, and reads it once to its end, so that one that cannot be used is refused
    /// before anything is written.
    pub(super) async fn backup(&self) -> Result<Option<Backup>> {
        let Some(path) = &self.restore else {
            return match &self.passphrase.passphrase_file {
                Some(_) => Err(Failure::new("--passphrase-file is for --restore")),
                None => Ok(None),
            };
        };
        if path.is_dir() {
            return self.stopped(path).await.map(Some);
        }
        let open = || BackupChain::at(path, &self.restore_base).map_err(with_source);
        let chain = open()?;
        let keys = match (&chain.manifest().keys, &self.restore_keys) {
            (_, Some(directory)) => {
                RestoredKeys::Given(BackupKeys::in_directory(directory).map_err(with_source)?)
            }
            (Some(KeySource::Passphrase(derivation)), None) => {
                if !self.identity.identity.is_empty() {
                    return Err(Failure::new(format!(
                        "the keys in {} are encrypted by a passphrase",
                        path.display()
                    ))
                    .with_hint("leave out --identity"));
                }
                let passphrase = self.passphrase.existing()?;
                RestoredKeys::Encrypted(derive_key(&passphrase, derivation).map_err(with_source)?)
            }
            (Some(KeySource::Recipients(wrapped)), None) => {
                RestoredKeys::Encrypted(self.identity.key(path, wrapped)?)
            }
            (None, None) => {
                return Err(Failure::new(format!("{} has no keys", path.display())).with_hint(
                    "--restore-keys DIR names a directory with secret-key, ca-key.pem and ca.pem",
                ));
            }
        };
        let key = match &keys {
            RestoredKeys::Encrypted(key) => Some(key),
            RestoredKeys::Given(_) => None,
        };
        chain.verify(key).await.map_err(with_source)?;
        Ok(Some(Backup::File { chain: Box::new(open()?), keys }))
    }

    /// Opens the directory of a controller that has ended, and checks all of it.
    async fn stopped(&self, path: &Path) -> Result<Backup> {
        let given = self.restore_keys.is_some() || self.passphrase.passphrase_file.is_some();
        if given || !self.identity.identity.is_empty() || !self.restore_base.is_empty() {
            return Err(Failure::new(format!(
                "{} is the directory of a controller: it is whole, and its keys are in the clear",
                path.display()
            ))
            .with_hint(
                "leave out --restore-keys, --restore-base, --passphrase-file and --identity, which are for a backup",
            ));
        }
        let stopped = StoppedController::at(path).await.map_err(with_source)?;
        if !self.blobs.is_given() {
            stopped.check_blobs().await.map_err(with_source)?;
        }
        Ok(Backup::Directory(Box::new(stopped)))
    }
}
