//! The grammar of command lines, one for all commands, compatible with programs written for Juju.
//!
//! - An option given twice has its last value, unless it is a list.
//! - A flag takes its value after `=`: `--force=true`, `--reveal=false`.
//! - An option of text takes the next word, whatever it begins with: `--info '- first'`.
//!
//! The commands themselves declare none of this. Help shows flags as flags, so there are two trees of one origin: one
//! for help, one for parsing.

use std::{any::TypeId, ffi::OsStr, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches as _, builder::StyledStr,
};
use periapt_host_api::truth;

use crate::{args::Cli, output::escaped, program};

/// The form of flags in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flags {
    /// Options whose value can be left out, for parsing.
    WithValues,
    /// Plain flags, for help.
    Alone,
}

/// Returns the command line for help, documentation and completion.
pub(crate) fn shown() -> Command {
    command(Flags::Alone)
}

/// Parses a command line, the program's name first.
pub(crate) fn read<T: AsRef<OsStr>>(words: &[T]) -> Result<Cli, clap::Error> {
    let words = words.iter().map(AsRef::as_ref);
    let mut command = command(Flags::WithValues);
    let read = command.try_get_matches_from_mut(words.clone()).and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.verb = verb(&matches);
        Ok(cli)
    });
    read.map_err(|error| {
        // The help tree parses the line again, so that help and errors show plain flags. The words that errors repeat
        // are escaped.
        let clean = words.map(|word| escaped(&word.to_string_lossy()).into_owned());
        match shown().try_get_matches_from(clean) {
            Err(told) if told.kind() == error.kind() => told,
            _ => error.format(&mut command),
        }
    })
}

/// Returns the words that name the command, such as `controller start`.
fn verb(matches: &ArgMatches) -> String {
    let levels = std::iter::successors(Some(matches), |matches| Some(matches.subcommand()?.1));
    let names: Vec<_> = levels.filter_map(ArgMatches::subcommand_name).collect();
    names.join(" ")
}

fn command(flags: Flags) -> Command {
    let command = with_rules(Cli::command().args_override_self(true), flags);
    match program::name() {
        program::OWN => command,
        name => with_name(command.bin_name(name)),
    }
}

fn with_rules(command: Command, flags: Flags) -> Command {
    command.mut_args(|argument| with_rule(argument, flags)).mut_subcommands(|below| with_rules(below, flags))
}

/// Returns the command with help that has the name by which the program was called.
fn with_name(mut command: Command) -> Command {
    let spelled = |text: &StyledStr| program::spelled(&text.to_string()).into_owned();
    if let Some(text) = command.get_about().map(spelled) {
        command = command.about(text);
    }
    if let Some(text) = command.get_long_about().map(spelled) {
        command = command.long_about(text);
    }
    if let Some(text) = command.get_after_help().map(spelled) {
        command = command.after_help(text);
    }
    let named = |argument: Arg| {
        let (short, long) = (argument.get_help().map(spelled), argument.get_long_help().map(spelled));
        let argument = short.into_iter().fold(argument, Arg::help);
        long.into_iter().fold(argument, Arg::long_help)
    };
    command.mut_args(named).mut_subcommands(with_name)
}

fn with_rule(argument: Arg, flags: Flags) -> Arg {
    if argument.is_positional() {
        return argument;
    }
    let of = argument.get_value_parser().type_id();
    let is_one = argument.get_num_args().is_none_or(|count| count == 1.into());
    let reads_text = argument.get_action().takes_values() && is_one;
    if of == TypeId::of::<bool>() {
        return match flags {
            Flags::WithValues => with_value(argument),
            Flags::Alone => argument.action(ArgAction::SetTrue),
        };
    }
    let is_text = of == TypeId::of::<String>() || of == TypeId::of::<PathBuf>();
    argument.allow_hyphen_values(is_text && reads_text)
}

fn with_value(flag: Arg) -> Arg {
    // A flag that `clap` sets to true is false by default; an option that may be left out has its own default.
    let is_set_alone =
        matches!(flag.get_action(), ArgAction::SetTrue) && flag.get_default_values().is_empty();
    let flag = flag.action(ArgAction::Set).num_args(0..=1).require_equals(true).value_name("true|false");
    let flag = flag.value_parser(read_truth).default_missing_value("true").hide_default_value(true);
    match is_set_alone {
        true => flag.default_value("false"),
        false => flag,
    }
}

/// The error for a flag's value that is neither true nor false.
#[derive(Debug, thiserror::Error)]
#[error("write true or false")]
struct NoTruth;

/// Parses a boolean as Juju does.
fn read_truth(text: &str) -> Result<bool, NoTruth> {
    truth::parse(text).ok_or(NoTruth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &[&str]) -> Result<Cli, clap::Error> {
        super::read(&[&["periapt"], line].concat())
    }

    fn refused(line: &[&str]) -> String {
        read(line).map(drop).expect_err("it is refused").to_string()
    }

    #[test]
    fn the_trees_are_consistent() {
        command(Flags::WithValues).debug_assert();
        shown().debug_assert();
    }

    /// Returns the arguments of a command and its subcommands.
    fn arguments(command: &Command) -> Vec<(String, Arg)> {
        let own = command.get_arguments().map(|it| (command.get_name().to_owned(), it.clone()));
        own.chain(command.get_subcommands().flat_map(arguments)).collect()
    }

    #[test]
    fn each_flag_of_each_command_takes_a_value_and_is_shown_without() {
        let mut seen = 0;
        for (name, flag) in arguments(&command(Flags::WithValues)) {
            if flag.get_value_parser().type_id() == TypeId::of::<bool>() {
                assert!(flag.is_require_equals_set() && flag.get_action().takes_values(), "{name} {flag}");
                seen += 1;
            }
            assert!(!matches!(flag.get_action(), ArgAction::SetTrue | ArgAction::SetFalse), "{name} {flag}");
        }
        assert!(seen > 100, "{seen} flags");
        for line in [&["--help"][..], &["remove-unit", "--help"], &["help", "remove-unit"], &["exec", "-h"]] {
            let help = refused(line);
            assert!(help.contains("Usage: periapt") && !help.contains("true|false"), "{help}");
        }
        let conflict = refused(&["debug-log", "--tail", "--no-tail"]);
        assert!(conflict.contains("'--tail' cannot be used with '--no-tail'"), "{conflict}");
        assert!(refused(&["debug-log", "--tial"]).contains("'--tail'"));
        assert!(refused(&["remove-unit", "a/0", "--force=maybe"]).contains("write true or false"));
    }

    #[test]
    fn a_flag_is_what_its_value_says_and_the_last_counts() {
        let force = |line: &[&str]| {
            let command = read(&[&["resolved", "a/0"], line].concat()).unwrap().command;
            format!("{command:?}").contains("no_retry: true")
        };
        for line in [
            &["--no-retry"][..],
            &["--no-retry=true"],
            &["--no-retry=1"],
            &["--no-retry=false", "--no-retry"],
        ] {
            assert!(force(line), "{line:?}");
        }
        for line in [&[][..], &["--no-retry=false"], &["--no-retry", "--no-retry=F"]] {
            assert!(!force(line), "{line:?}");
        }
        let quiet = |line: &[&str]| read(line).unwrap().quiet;
        assert!(quiet(&["-q", "status"]) && quiet(&["status", "--quiet=true"]) && quiet(&["-Bq", "status"]));
        assert!(!quiet(&["-q=false", "status"]) && !quiet(&["-B", "status"]));
        let parallel = |line: &[&str]| {
            let line = [&["exec", "--all"], line, &["config-get", "--parallel=false"]].concat();
            format!("{:?}", read(&line).unwrap().command).contains("parallel: true")
        };
        assert!(parallel(&[]) && parallel(&["--parallel"]) && !parallel(&["--parallel=false"]));
        let prune =
            |line: &[&str]| format!("{:?}", read(&[&["update-secret", "s"], line].concat()).unwrap().command);
        assert!(prune(&[]).contains("auto_prune: None"));
        assert!(prune(&["--auto-prune"]).contains("auto_prune: Some(true)"));
        assert!(prune(&["--auto-prune=false"]).contains("auto_prune: Some(false)"));
    }

    #[test]
    fn of_options_the_last_counts_and_lists_are_whole() {
        let shown = |line: &[&str]| format!("{:?}", read(line).unwrap().command);
        let deployed = shown(&["deploy", "./a", "-n", "1", "-n", "2", "--config", "a=1", "--config", "b=2"]);
        assert!(deployed.contains("2") && deployed.contains(r#"["a=1", "b=2"]"#), "{deployed}");
        assert!(shown(&["status", "--format", "yaml", "--format", "json"]).contains("format: Json"));
    }

    #[test]
    fn texts_begin_as_they_will_and_other_words_as_before() {
        let shown = |line: &[&str]| format!("{:?}", read(line).unwrap().command);
        assert!(shown(&["add-secret", "s", "a=b", "--info", "- first"]).contains(r#"info: "- first""#));
        assert!(shown(&["add-secret", "s", "--info", "--force", "a=b"]).contains(r#"info: "--force""#));
        let exec = shown(&["exec", "--unit", "a/0", "--", "relation-get", "-r", "1", "-", "--force=true"]);
        assert!(exec.contains(r#"["relation-get", "-r", "1", "-", "--force=true"]"#), "{exec}");
        assert!(shown(&["config", "a", "--", "k=-1"]).contains("k=-1"));
        for line in
            [&["config", "a", "-1"][..], &["status", "--watch", "--nothing"], &["add-unit", "a", "-n", "-1"]]
        {
            assert!(read(line).is_err(), "{line:?}");
        }
        assert!(read(&["status", "--watch", "--format", "json"]).is_ok());
    }
}
