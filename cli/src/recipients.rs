//! The recipients to whom a backup's keys are encrypted, and the identities that decrypt them: public and secret keys of
//! age, so that they are made and kept by its tools.

use std::{
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use age::{
    Decryptor, Encryptor,
    armor::{ArmoredReader, ArmoredWriter, Format},
    x25519::{Identity, Recipient},
};
use clap::Args;
use periapt_host_api::backup::{KEY_BYTES, KeyEncryption, KeySource, WrappedKey, WrappingKey};

use crate::{
    error::{Explain as _, Failure, Result, with_source},
    input,
};

/// The largest file of recipients or identities, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// The options for recipients.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecipientsArg {
    /// A public key (age1...) whose secret key opens the backup's keys, instead of a passphrase; may be repeated
    #[arg(long, value_name = "RECIPIENT", value_parser = recipient, conflicts_with = "passphrase_file")]
    recipient: Vec<Recipient>,
    /// A file with such public keys, one a line; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    recipients_file: Vec<PathBuf>,
}

/// The option for an identity.
#[derive(Debug, Clone, Args)]
pub(crate) struct IdentityArg {
    /// A file with the secret key (AGE-SECRET-KEY-1...) for a backup whose keys are encrypted to recipients; may be
    /// repeated
    #[arg(long, value_name = "FILE", requires = "restore", conflicts_with = "passphrase_file")]
    pub(crate) identity: Vec<PathBuf>,
}

impl RecipientsArg {
    /// Chooses a key, and encrypts it to the recipients; none if the operator named no recipients.
    pub(crate) fn encryption(&self) -> Result<Option<KeyEncryption>> {
        let mut recipients = self.recipient.clone();
        for path in &self.recipients_file {
            let before = recipients.len();
            recipients.extend(each_line(path, recipient)?);
            if recipients.len() == before {
                return Err(Failure::new(format!("{} has no recipient", path.display())));
            }
        }
        if recipients.is_empty() {
            return Ok(None);
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).explain(|| "cannot make a key".to_owned())?;
        let wrapped = wrap(&key, &recipients)?;
        Ok(Some(KeyEncryption { key: WrappingKey::new(key), source: KeySource::Recipients(wrapped) }))
    }
}

impl IdentityArg {
    /// Decrypts the key of a backup.
    pub(crate) fn key(&self, backup: &Path, wrapped: &WrappedKey) -> Result<WrappingKey> {
        if self.identity.is_empty() {
            return Err(Failure::new(format!(
                "the keys in {} are encrypted to recipients",
                backup.display()
            ))
            .with_hint("--identity FILE names the file with a recipient's secret key"));
        }
        let mut identities = Vec::new();
        for path in &self.identity {
            identities.extend(each_line(path, identity)?);
        }
        let unusable = |error: String| {
            Failure::new(format!("the keys in {} cannot be decrypted: {error}", backup.display()))
        };
        let decryptor = Decryptor::new(ArmoredReader::new(wrapped.as_str().as_bytes()));
        let decryptor = decryptor.map_err(|error| unusable(error.to_string()))?;
        let known = identities.iter().map(|identity| identity as &dyn age::Identity);
        let mut reader = decryptor.decrypt(known).map_err(|error| match error {
            age::DecryptError::NoMatchingKeys => Failure::new(format!(
                "no identity in {} opens the keys in {}",
                list(&self.identity),
                backup.display()
            )),
            error => unusable(error.to_string()),
        })?;
        let mut key = [0; KEY_BYTES];
        reader.read_exact(&mut key).map_err(|error| unusable(error.to_string()))?;
        // Only its end says that all of it is genuine.
        let after = reader.read(&mut [0]).map_err(|error| unusable(error.to_string()))?;
        if after > 0 {
            return Err(unusable("it is no key of a backup".to_owned()));
        }
        Ok(WrappingKey::new(key))
    }
}

fn wrap(key: &[u8; KEY_BYTES], recipients: &[Recipient]) -> Result<WrappedKey> {
    let recipients = recipients.iter().map(|recipient| recipient as &dyn age::Recipient);
    let encryptor = Encryptor::with_recipients(recipients).map_err(with_source)?;
    let armored = || -> std::io::Result<Vec<u8>> {
        let armor = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
        let mut writer = encryptor.wrap_output(armor)?;
        writer.write_all(key)?;
        writer.finish()?.finish()
    };
    let text = armored().explain(|| "cannot encrypt the key".to_owned())?;
    let text = String::from_utf8(text).map_err(with_source)?;
    WrappedKey::try_from(text)
        .map_err(|error| Failure::new(error.to_string()).with_hint("name fewer recipients"))
}

/// Reads a public key.
fn recipient(text: &str) -> Result<Recipient, String> {
    text.parse()
        .map_err(|_| "a recipient is a public key of age, such as age-keygen prints: age1...".to_owned())
}

/// Reads a secret key. The error does not repeat it.
fn identity(text: &str) -> Result<Identity, String> {
    text.parse().map_err(|_| "an identity is a secret key of age, AGE-SECRET-KEY-1...".to_owned())
}

/// Reads the lines of a file that are neither empty nor comments.
fn each_line<T>(path: &Path, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>> {
    let text = input::text_within(path, MAX_FILE)?;
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = lines.map(|(number, line)| {
        read(line).map_err(|error| Failure::new(format!("{}, line {number}: {error}", path.display())))
    });
    read.collect()
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    shown.join(", ")
}
