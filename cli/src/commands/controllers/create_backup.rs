//! `create-backup`: all that a controller keeps, in one file.

use std::path::{Path, PathBuf};

use clap::Args;
use periapt_controller::{BackupFile, derive_key, new_derivation};
use periapt_host_api::{
    Digest, Revision, StoreId, Timestamp,
    backup::{BackupRequest, KeyEncryption},
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Explain as _, Failure, Result, with_source},
    output::{OutputArgs, Progress},
    passphrase::PassphraseArg,
};

/// Write a backup of a controller into a file
///
/// The controller goes on meanwhile. The file has its store at one revision, the charms and resources, and its keys,
/// encrypted by a passphrase: without the passphrase the content of secrets cannot be read from the file. It is of
/// mode 600, and appears under its name once it is whole. `periapt bootstrap --restore` makes a controller of it. For
/// superusers alone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt create-backup\n  periapt create-backup --filename monday.tar --passphrase-file pass"
)]
pub(crate) struct CreateBackup {
    /// The file to write, by default periapt-backup-YYYYMMDD-HHMMSS.tar
    #[arg(long, value_name = "FILE")]
    filename: Option<PathBuf>,
    #[command(flatten)]
    passphrase: PassphraseArg,
    /// Leave the keys out; they must be kept elsewhere, because nothing can be restored without them
    #[arg(long, conflicts_with = "passphrase_file")]
    no_keys: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// A written backup.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Written {
    filename: PathBuf,
    bytes: u64,
    digest: Digest,
    store: StoreId,
    revision: Revision,
    created: Timestamp,
    blobs: u64,
    keys: bool,
}

impl Verb for CreateBackup {
    async fn run(self, context: &Context) -> Result<()> {
        let filename = self.filename.clone().unwrap_or_else(|| {
            PathBuf::from(format!("periapt-backup-{}.tar", Timestamp::now().strftime("%Y%m%d-%H%M%S")))
        });
        if filename.exists() {
            return Err(Failure::new(format!("{} already exists", filename.display()))
                .with_hint("name another file with --filename"));
        }
        let controller = context.controller(self.controller.controller.as_ref())?;
        let request = BackupRequest { keys: self.encryption()? };
        let key = request.keys.as_ref().map(|keys| &keys.key);
        let parent =
            filename.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Of mode 600, and removed unless it is kept.
        let partial = tempfile::Builder::new().prefix(".periapt-").suffix(".part").tempfile_in(parent);
        let partial = partial.explain(|| format!("cannot write in {}", parent.display()))?;
        let progress = Progress::of_download(&filename.display().to_string());
        let again = partial.reopen().explain(|| format!("cannot write in {}", parent.display()))?;
        let mut file = tokio::fs::File::from_std(again);
        let received = controller.client.back_up(&request, &mut file, |bytes| progress.advance(bytes)).await;
        progress.finish();
        received?;
        file.sync_all().await.explain(|| format!("cannot write {}", filename.display()))?;
        let written = BackupFile::at(partial.path()).map_err(with_source)?;
        let summary = written.verify(key).await.map_err(with_source)?;
        let kept = partial.persist_noclobber(&filename);
        kept.explain(|| format!("cannot write {}", filename.display()))?;
        let written = Written {
            filename,
            bytes: summary.bytes,
            digest: summary.digest,
            store: summary.manifest.store,
            revision: summary.manifest.revision,
            created: summary.manifest.created,
            blobs: summary.blobs,
            keys: summary.manifest.keys.is_some(),
        };
        self.output.print(context.color, &written, |written| {
            format!(
                "Backup of revision {} written to {} ({} bytes)\n",
                written.revision,
                written.filename.display(),
                written.bytes
            )
        })
    }
}

impl CreateBackup {
    fn encryption(&self) -> Result<Option<KeyEncryption>> {
        if self.no_keys {
            return Ok(None);
        }
        let passphrase = self.passphrase.new_passphrase().map_err(|failure| {
            failure.with_hint("--no-keys makes a backup without keys, which must be kept elsewhere")
        })?;
        let derivation = new_derivation().map_err(with_source)?;
        let key = derive_key(&passphrase, &derivation).map_err(with_source)?;
        Ok(Some(KeyEncryption { key, derivation }))
    }
}
