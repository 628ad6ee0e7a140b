//! `create-backup`: all that a controller keeps, in one file.

use std::path::{Path, PathBuf};

use clap::Args;
use periapt_controller::{BackupFile, derive_key, new_derivation};
use periapt_host_api::{
    Digest, Revision, StoreId, Timestamp,
    backup::{BackupRequest, BaseContents, KeyEncryption, KeySource},
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Explain as _, Failure, Result, with_source},
    output::{OutputArgs, Progress},
    passphrase::PassphraseArg,
    recipients::RecipientsArg,
};

/// Write a backup of a controller into a file
///
/// The controller goes on meanwhile. The file has its store at one revision, the charms and resources, and its keys,
/// encrypted by a passphrase: without the passphrase the content of secrets cannot be read from the file. It is of
/// mode 600, and appears under its name once it is whole. `periapt bootstrap --restore` makes a controller of it. For
/// superusers alone.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt create-backup\n  periapt create-backup --filename monday.tar --passphrase-file pass\n  periapt create-backup --filename tuesday.tar --base monday.tar --recipients-file operators.txt"
)]
pub(crate) struct CreateBackup {
    /// The file to write, by default periapt-backup-YYYYMMDD-HHMMSS.tar
    #[arg(long, value_name = "FILE")]
    filename: Option<PathBuf>,
    #[command(flatten)]
    passphrase: PassphraseArg,
    #[command(flatten)]
    recipients: RecipientsArg,
    /// Leave the keys out; they must be kept elsewhere, because nothing can be restored without them
    #[arg(long, conflicts_with_all = ["passphrase_file", "recipient", "recipients_file"])]
    no_keys: bool,
    /// Leave out what this earlier backup has, which a restoration then needs too
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
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
    blobs: usize,
    keys: bool,
    /// The digest of the backup that this one builds on.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Digest>,
    /// The number of files and blobs that the base has.
    unchanged: usize,
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
        let base = match &self.base {
            None => None,
            Some(path) => Some(base_of(path).await?),
        };
        let request = BackupRequest { keys: self.encryption()?, base };
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
            blobs: summary.blobs(),
            unchanged: summary.unchanged(),
            keys: summary.manifest.keys.is_some(),
            base: summary.manifest.base.map(|base| base.digest),
        };
        self.output.print(context.color, &written, |written| {
            let left_out = match &self.base {
                Some(base) => format!(", {} parts are in {}", written.unchanged, base.display()),
                None => String::new(),
            };
            format!(
                "Backup of revision {} written to {} ({} bytes){left_out}\n",
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
        if let Some(encryption) = self.recipients.encryption()? {
            return Ok(Some(encryption));
        }
        let passphrase = self.passphrase.new_passphrase().map_err(|failure| {
            failure.with_hint(
                "--recipient encrypts the keys to a public key; --no-keys makes a backup without keys, which must be kept elsewhere",
            )
        })?;
        let derivation = new_derivation().map_err(with_source)?;
        let key = derive_key(&passphrase, &derivation).map_err(with_source)?;
        Ok(Some(KeyEncryption { key, source: KeySource::Passphrase(derivation) }))
    }
}

/// Reads the backup that a new one builds on to its end: one that is damaged is no base. Those that it builds on itself are
/// not read.
async fn base_of(path: &Path) -> Result<BaseContents> {
    let file = BackupFile::at(path).map_err(with_source)?;
    let summary = file.verify(None).await.map_err(with_source)?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(summary.as_base(&name.to_string_lossy()))
}
