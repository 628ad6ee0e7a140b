//! The passphrase of a backup's keys: from a file, or from the terminal, never from the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use periapt_host_api::password::{MAX_PASSWORD_BYTES, Password};

use crate::{
    error::{Explain as _, Failure, Result},
    input,
    secret_input::{asked, checked},
};

/// The option for a passphrase.
#[derive(Debug, Clone, Args)]
pub(crate) struct PassphraseArg {
    /// The file with the passphrase of the backup's keys, instead of a question
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

impl PassphraseArg {
    /// Reads the passphrase of an existing backup.
    pub(crate) fn existing(&self) -> Result<Password> {
        match &self.passphrase_file {
            Some(path) => in_file(path),
            None => asked_once("Passphrase of the backup: "),
        }
    }

    /// Reads the passphrase of a new backup, twice if a person types it.
    pub(crate) fn new_passphrase(&self) -> Result<Password> {
        if let Some(path) = &self.passphrase_file {
            return in_file(path);
        }
        let (first, second) =
            (asked_once("Passphrase for the backup's keys: ")?, asked_once("Confirm passphrase: ")?);
        match first == second {
            true => Ok(first),
            false => Err(Failure::new("passphrases didn't match")),
        }
    }
}

fn asked_once(question: &str) -> Result<Password> {
    if !input::is_terminal() {
        return Err(Failure::new("there is no terminal to ask for the passphrase of the backup's keys")
            .with_hint("use --passphrase-file FILE in scripts"));
    }
    asked(question).and_then(checked)
}

fn in_file(path: &Path) -> Result<Password> {
    let bytes = input::bytes(path, MAX_PASSWORD_BYTES as u64 + 2)?;
    let text = String::from_utf8(bytes).explain(|| format!("{}", path.display()))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    checked(text.to_owned()).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
