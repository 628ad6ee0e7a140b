//! Passwords from an operator: from the environment, standard input or the terminal, never from the command line, which
//! every process of the host may read.

use clap::Args;
use periapt_host_api::password::{MAX_PASSWORD_BYTES, Password};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::{
    error::{Explain as _, Failure, Result},
    input,
    output::write_error,
};

/// The variable that holds a password, for scripts.
pub(crate) const PASSWORD_VARIABLE: &str = "PERIAPT_PASSWORD";

/// The option that takes the password from standard input.
#[derive(Debug, Clone, Args)]
pub(crate) struct PasswordArg {
    /// Read the password from standard input, without a question
    #[arg(long)]
    pub(crate) no_prompt: bool,
}

impl PasswordArg {
    /// Reads a password that exists.
    pub(crate) fn existing(&self, question: &str) -> Result<Password> {
        match self.given()? {
            Some(password) => Ok(password),
            None => asked(question).and_then(checked),
        }
    }

    /// Reads a new password, twice if a person types it.
    pub(crate) fn new_password(&self) -> Result<Password> {
        if let Some(password) = self.given()? {
            return Ok(password);
        }
        let (first, second) = (asked("Enter a new password: ")?, asked("Confirm password: ")?);
        match first == second {
            true => checked(first),
            false => Err(Failure::new("passwords didn't match")),
        }
    }

    /// Returns the password of the environment or of standard input.
    fn given(&self) -> Result<Option<Password>> {
        if let Some(text) = std::env::var_os(PASSWORD_VARIABLE).filter(|text| !text.is_empty()) {
            let text = text
                .into_string()
                .map_err(|_| Failure::new(format!("{PASSWORD_VARIABLE} is not UTF-8 text")))?;
            return checked(text).map(Some);
        }
        match self.no_prompt {
            true => {
                let line = input::lines(MAX_PASSWORD_BYTES as u64 + 2).next();
                let line = line.ok_or_else(|| Failure::new("standard input has no password"))??;
                checked(line.trim_end_matches(['\n', '\r']).to_owned()).map(Some)
            }
            false if !input::is_terminal() => {
                Err(Failure::new("there is no terminal to ask for the password")
                    .with_hint(format!("use --no-prompt in scripts, or set {PASSWORD_VARIABLE}")))
            }
            false => Ok(None),
        }
    }
}

pub(crate) fn checked(text: String) -> Result<Password> {
    Password::try_from(text).map_err(|error| Failure::new(error.to_string()))
}

/// Asks on the terminal, which does not show the answer.
pub(crate) fn asked(question: &str) -> Result<String> {
    let terminal = std::io::stdin();
    let cannot = || "cannot hide the password on the terminal".to_owned();
    let shown = tcgetattr(&terminal).explain(cannot)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    write_error(question).explain(|| "cannot ask".to_owned())?;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden).explain(cannot)?;
    let answer = input::answer_within(MAX_PASSWORD_BYTES as u64 + 2);
    // The terminal is restored whether an answer came or not.
    let restored = tcsetattr(&terminal, OptionalActions::Flush, &shown).explain(cannot);
    write_error("\n").explain(|| "cannot ask".to_owned())?;
    restored?;
    let answer = answer.explain(|| "cannot read the answer".to_owned())?;
    Ok(answer.trim_end_matches(['\n', '\r']).to_owned())
}
