//! Asking a person before something cannot be taken back.

use clap::Args;

use crate::{
    error::{Explain as _, Failure, Result},
    input,
    output::tell,
};

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
        // A question that nobody saw has no answer.
        tell(&format!("WARNING {what}\n\nContinue [y/N]? ")).explain(|| "cannot ask".to_owned())?;
        let answer = input::answer().explain(|| "cannot read the answer".to_owned())?;
        if !answer.ends_with('\n') {
            // Nobody has ended the line of the question.
            tell("\n").explain(|| "cannot ask".to_owned())?;
        }
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::new("aborted: nothing was changed")
                .with_hint("scripts say --no-prompt, to which nothing is asked")),
        }
    }
}
