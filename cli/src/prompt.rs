//! Confirmation of changes that cannot be undone.

use clap::Args;

use crate::{
    error::{Explain as _, Failure, Result},
    input,
    output::write_error,
};

/// The option that skips the question.
#[derive(Debug, Clone, Args)]
pub(crate) struct PromptArg {
    /// Do not ask for confirmation
    #[arg(short = 'y', long, visible_alias = "yes")]
    pub(crate) no_prompt: bool,
}

impl PromptArg {
    /// Prints the consequences, and waits for a yes. Any other answer, or none, is a no.
    pub(crate) fn confirm(&self, what: &str) -> Result<()> {
        if self.no_prompt {
            return Ok(());
        }
        // Without a reader of the question there is no answer.
        write_error(&format!("WARNING {what}\n\nContinue [y/N]? ")).explain(|| "cannot ask".to_owned())?;
        let answer = input::answer().explain(|| "cannot read the answer".to_owned())?;
        if !answer.ends_with('\n') {
            // The input ended, so the question's line has no line break.
            write_error("\n").explain(|| "cannot ask".to_owned())?;
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new("aborted: nothing was changed").with_hint("use --no-prompt in scripts")),
        }
    }
}
