//! `documentation`: all commands with their options, as Markdown or as manual pages.

use std::{fs, path::PathBuf};

use clap::{Args, Command, ValueEnum};

use crate::{
    commands::Verb,
    context::Context,
    error::{Explain as _, Failure, Result},
    grammar,
    output::{Sink, Text, write_whole},
};

/// The width of the help texts.
const WIDTH: usize = 100;

/// Generate the documentation of all commands
///
/// Markdown goes to standard output, or into a file of a directory; manual pages, one for each command, into a directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt documentation
  periapt documentation --format man --out ~/.local/share/man/man1")]
pub(crate) struct Documentation {
    /// The form
    #[arg(long, value_enum, default_value = "markdown")]
    format: Form,
    /// The directory
    #[arg(long, value_name = "DIR", required_if_eq("format", "man"))]
    out: Option<PathBuf>,
}

/// The formats of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One document
    Markdown,
    /// Pages for `man`
    Man,
}

impl Verb for Documentation {
    async fn run(self, context: &Context) -> Result<()> {
        let Some(directory) = self.out else {
            return Sink::new(None, context.color)?.write(Text::value(markdown()));
        };
        let cannot = || format!("cannot write into {}", directory.display());
        fs::create_dir_all(&directory).explain(cannot)?;
        match self.format {
            Form::Markdown => write_whole(&directory.join("cli.md"), markdown().as_bytes()).explain(cannot),
            Form::Man => clap_mangen::generate_to(commands(), &directory)
                .map_err(|error| Failure::new(format!("{}: {error}", cannot()))),
        }
    }
}

/// Returns the complete command line, as wide as a page.
fn commands() -> Command {
    let mut command = unset();
    command.build();
    command
}

/// Returns the command line before global options are passed down.
fn unset() -> Command {
    grammar::shown().term_width(WIDTH).disable_help_subcommand(true)
}

/// Formats one document of all commands.
pub(crate) fn markdown() -> String {
    let mut text = String::from(
        "# The command line\n\n\
         Written by `periapt documentation`; `periapt help COMMAND` shows the same. Options of all commands\n\
         stand here alone.\n\n",
    );
    let root = commands();
    section(&mut text, &root);
    // The document shows these options once.
    let mut each = unset();
    for id in ["color", "no_color", "quiet", "verbose", "debug"] {
        each = each.mut_arg(id, |argument| argument.hide(true));
    }
    each.build();
    below(&mut text, &each);
    text
}

fn below(text: &mut String, command: &Command) {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
        text.push_str(&format!("## {name}\n\n"));
        section(text, command);
        below(text, command);
    }
}

/// Adds the output of `--help`, as on a terminal.
fn section(text: &mut String, command: &Command) {
    let help = command.clone().term_width(WIDTH).render_long_help().to_string();
    text.push_str("```text\n");
    for line in help.trim_end().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("```\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_in_the_repository_is_that_of_the_code() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
        let text = markdown();
        if std::env::var_os("PERIAPT_UPDATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            there == text,
            "docs/cli.md is behind: `PERIAPT_UPDATE=1 cargo nextest run -p periapt document`"
        );
    }

    #[test]
    fn each_command_has_a_page_and_a_section() {
        let directory = tempfile::tempdir().unwrap();
        clap_mangen::generate_to(commands(), directory.path()).unwrap();
        let text = markdown();
        for command in grammar::shown().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            assert!(text.contains(&format!("## periapt {name}\n")), "{name}");
            let page = fs::read_to_string(directory.path().join(format!("periapt-{name}.1"))).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}");
        }
    }
}
