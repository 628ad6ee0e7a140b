//! Shell completion: the shell asks this program for the words that may stand at the cursor, with the present names.
//!
//! `periapt completion bash` prints a script for the shell. It runs the program with [`VARIABLE`] set, and the words of
//! its line after `--`. The value's name in the help decides how an argument is completed: `APPLICATION[:ENDPOINT]`
//! takes names of applications.

mod live;
mod words;

use std::env;

use clap::Command;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate},
};

use self::words::Words;
use crate::{
    error::{Failure, Result},
    grammar, output,
};

/// The variable that names the asking shell.
pub(crate) const VARIABLE: &str = "PERIAPT_COMPLETE";

/// The kinds of names that are completed from the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Application,
    Unit,
    Action,
    Machine,
    Storage,
    Secret,
    Space,
    Offer,
    Model,
    Controller,
}

/// The kinds by the words of value names.
const KINDS: [(&str, Kind); 10] = [
    ("APPLICATION", Kind::Application),
    ("UNIT", Kind::Unit),
    ("ACTION", Kind::Action),
    ("MACHINE", Kind::Machine),
    ("STORAGE", Kind::Storage),
    ("SECRET", Kind::Secret),
    ("SPACE", Kind::Space),
    ("OFFER", Kind::Offer),
    ("MODEL", Kind::Model),
    ("CONTROLLER", Kind::Controller),
];

/// Answers a shell's request for completions. Returns true if this process was started for one.
pub(crate) fn answered() -> Result<bool> {
    let asked = CompleteEnv::with_factory(command).var(VARIABLE);
    let directory = env::current_dir().ok();
    let answered = asked
        .try_complete(env::args_os(), directory.as_deref())
        .map_err(|error| Failure::new(error.to_string().trim_end().to_owned()))?;
    // Output without a line break at its end is still in the buffer.
    output::flush()?;
    Ok(answered)
}

/// Returns the command line, with completions of names.
fn command() -> Command {
    with_names(grammar::shown())
}

fn with_names(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let kinds = kinds(&argument);
        match kinds.is_empty() || !argument.get_action().takes_values() {
            true => argument,
            false => argument.add(ArgValueCompleter::new(move |word: &std::ffi::OsStr| {
                let word = word.to_str().unwrap_or_default();
                candidates(&kinds, word)
            })),
        }
    });
    command.mut_subcommands(with_names)
}

/// Returns the kinds of names of an argument, in the order of its value's name.
fn kinds(argument: &clap::Arg) -> Vec<Kind> {
    let named = argument.get_value_names().map(|names| names.join(" "));
    let text = named.unwrap_or_else(|| argument.get_id().as_str().to_uppercase());
    let words = text.split(|c: char| !c.is_ascii_alphabetic());
    let kind = |word: &str| {
        // `APPLICATIONS` takes one name after the other.
        let one = word.strip_suffix('S').unwrap_or(word);
        KINDS.iter().find(|(name, _)| *name == word || *name == one).map(|(_, kind)| *kind)
    };
    words.filter_map(kind).collect()
}

/// Returns the names that begin as the word does. An unreachable controller gives none.
fn candidates(kinds: &[Kind], word: &str) -> Vec<CompletionCandidate> {
    // The last of several names joined by commas is completed.
    let (before, last) = word.rsplit_once(',').map_or(("", word), |(before, last)| (before, last));
    let names = live::names(kinds, &Words::of_this_process()).unwrap_or_default();
    let fitting = names.into_iter().filter(|name| name.starts_with(last));
    fitting
        .map(|name| match before.is_empty() {
            true => CompletionCandidate::new(name),
            false => CompletionCandidate::new(format!("{before},{name}")),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(verb: &str, argument: &str, expected: &[Kind]) {
        let command = grammar::shown();
        let command = command.find_subcommand(verb).unwrap();
        let argument = command.get_arguments().find(|known| known.get_id() == argument).unwrap();
        assert_eq!(kinds(argument), expected, "{verb}");
    }

    #[test]
    fn what_an_argument_names_is_read_off_the_help() {
        check("config", "application", &[Kind::Application]);
        check("integrate", "second", &[Kind::Application, Kind::Model, Kind::Offer]);
        check("remove-application", "applications", &[Kind::Application]);
        check("show-unit", "units", &[Kind::Unit]);
        check("remove-unit", "units", &[Kind::Unit, Kind::Application]);
        check("run", "arguments", &[Kind::Unit, Kind::Action]);
        check("status", "model", &[Kind::Controller, Kind::Model]);
        check("show-secret", "secret", &[Kind::Secret]);
        check("config", "arguments", &[]);
        check("deploy", "charm", &[]);
    }
}
