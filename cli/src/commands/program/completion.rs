//! `completion`: the script by which a shell asks this program for completions.

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::{
    commands::Verb,
    complete::VARIABLE,
    context::Context,
    error::{Explain as _, Result},
    output::{Sink, Text},
    program::{OWN, name},
};

/// Print a script by which a shell completes commands, options and names
///
/// Names of applications, units, actions, models and the like come from the controller when TAB is pressed. The
/// script belongs into a file that the shell reads: `~/.local/share/bash-completion/completions/periapt`,
/// `~/.config/fish/completions/periapt.fish`, or a directory of zsh's `fpath`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt completion bash\n  periapt completion zsh\n  periapt completion fish"
)]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The supported shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Verb for Completion {
    async fn run(self, context: &Context) -> Result<()> {
        let shell: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        };
        let program = std::env::current_exe().explain(|| "this program's own path".to_owned())?;
        let mut text = Vec::new();
        shell
            .write_registration(VARIABLE, OWN, name(), &program.to_string_lossy(), &mut text)
            .explain(|| "cannot write the script".to_owned())?;
        Sink::new(None, context.color)?.write(Text::value(String::from_utf8_lossy(&text)))
    }
}
