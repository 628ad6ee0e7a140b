//! Backups: one file with all that a controller keeps, and the way back.
//!
//! A backup is a tar file of plain entries, in this order:
//!
//! | entry | content |
//! | --- | --- |
//! | `periapt-backup.json` | the [`BackupManifest`] |
//! | `keys` | the controller's keys, encrypted; absent if the operator wanted none |
//! | `store/NAME` | a file of the store's checkpoint |
//! | `charms/DIGEST`, `resources/DIGEST` | a blob |
//! | `unchanged/` before any of these | the digest of a part that the backup has on which this one builds |
//! | `digest` | the SHA-256 of all bytes before this entry, in hexadecimal digits |
//!
//! A reader accepts only the bytes that the writer writes for an entry's name and size, so no other feature of tar has to
//! be judged.

mod adopt;
mod base;
mod chain;
mod create;
mod entry;
mod error;
mod keys;
mod manifest;
mod raise;
mod read;
mod recover;
mod restore;
mod source;

pub use self::{
    adopt::{RestoredController, RestoredLog},
    chain::BackupChain,
    error::BackupError,
    keys::{BackupKeys, derive_key, new_derivation},
    manifest::BackupManifest,
    read::{BackupFile, BackupSummary},
    recover::{StoppedController, recover},
    restore::{RestoredKeys, restore},
};
pub(crate) use self::{create::BackupParts, source::BackupSource};
