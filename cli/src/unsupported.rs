//! Juju's verbs and options that Periapt leaves out on purpose: the error has the reason, and an alternative.
//!
//! `docs/juju-differences.md` lists the same. Features that are only missing so far are not in here. `juju.txt`
//! lists all commands and options of Juju: a test finds each either here or in the command line.

mod options;
mod verbs;

#[cfg(test)]
mod tests;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use self::{options::OPTIONS, verbs::VERBS};
use crate::{error::Failure, grammar};

/// Returns the failure for an invalid command line that is Juju's. None for others.
pub(crate) fn answer(error: &clap::Error, arguments: &[String]) -> Option<Failure> {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb(named(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let typed = arguments.iter().find(|argument| !argument.starts_with('-'))?;
            let command = grammar::shown();
            let verb = command.find_subcommand(typed).map_or(typed.as_str(), clap::Command::get_name);
            option(verb, named(ContextKind::InvalidArg)?)
        }
        _ => None,
    }
}

fn verb(verb: &str) -> Option<Failure> {
    let found = VERBS.iter().find(|reason| reason.verbs.contains(&verb))?;
    let text = format!("{verb} is not supported, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}

fn option(verb: &str, option: &str) -> Option<Failure> {
    // The error's option may have a value.
    let name = option.split('=').next().unwrap_or(option);
    let of_verb = |verbs: &[&str]| verbs.is_empty() || verbs.contains(&verb);
    let found = OPTIONS.iter().find(|reason| of_verb(reason.verbs) && reason.options.contains(&name))?;
    let text = format!("{verb} {name} is not supported, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}
