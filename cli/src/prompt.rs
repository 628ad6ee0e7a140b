//! Asking a person before something cannot be taken back.

use std::io::{self, BufRead as _, Write as _};

use clap::Args;

use crate::error::{Explain as _, Failure, Result};

/// Whether to ask at all.
#[derive(Debug, Clone, Args)]
pub(crate) struct PromptArg {
    /// Do not ask for confirmation
    #[arg(short = 'y', long, visible_alias = "yes")]
    pub(crate) no_prompt: bool,
}

impl PromptArg {
    /// Says what will happen and waits for a yes; anything else, or nobody there, is a no.
    pub(crate) fn confirm(&self, what: &str) -> Result<()> {
        if self.no_prompt {
            return Ok(());
        }
        let mut output = anstream::stderr();
        write!(output, "WARNING {what}\n\nContinue [y/N]? ").and_then(|()| output.flush())?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).explain(|| "cannot read the answer".to_owned())?;
        if !answer.ends_with('\n') {
            // Nobody has ended the line of the question.
            writeln!(output)?;
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new("aborted: nothing was changed")
                .with_hint("scripts say --no-prompt, to which nothing is asked")),
        }
    }
}
