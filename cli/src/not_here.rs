//! What Juju has and Periapt has not, on purpose: whoever types it is told why, and what there is instead.
//!
//! `docs/juju-differences.md` lists the same. What is only not there yet is not in here. `juju.txt` is all that Juju
//! has: a test finds each command and each option either here or in the command line.

mod options;
mod verbs;

#[cfg(test)]
mod tests;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use self::{options::OPTIONS, verbs::VERBS};
use crate::{error::Failure, grammar};

/// What is said to a command line that was not understood because it is Juju's; none for all others.
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
    let text = format!("{verb} is not here, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}

fn option(verb: &str, option: &str) -> Option<Failure> {
    // As it is named in the error, it may have a value.
    let name = option.split('=').next().unwrap_or(option);
    let of_verb = |verbs: &[&str]| verbs.is_empty() || verbs.contains(&verb);
    let found = OPTIONS.iter().find(|reason| of_verb(reason.verbs) && reason.options.contains(&name))?;
    let text = format!("{verb} {name} is not here, because {}", found.because);
    Some(Failure::new(text).with_hint(found.instead))
}
