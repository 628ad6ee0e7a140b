//! Flags as Juju's tools take them (T-2, T-3): before or after positional arguments; `--name=value`, `--name
//! value`, `-n value`, `-nvalue`; single letters may be joined; `--` ends the flags; `-` is no flag.

use std::collections::BTreeMap;

use periapt_host_api::truth;

use crate::CallError;

/// A flag of a tool.
pub(super) struct Flag {
    /// The names with their dashes. The tool looks the flag up by the first.
    pub(super) names: &'static [&'static str],
    pub(super) kind: Kind,
    /// The help text.
    pub(super) help: &'static str,
}

/// The kind of value that follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No value, or `=true` or `=false`.
    Switch,
    /// A text, with its default.
    Text(&'static str),
    /// A value that is not parsed as a text, with its default.
    Value(Initial),
}

/// The default of a value. `--help` prints it, and charms read it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Initial {
    /// A fixed default.
    Fixed(&'static str),
    /// The hook's relation.
    Relation,
    /// The hook's storage.
    Storage,
}

/// A flag with its last given value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenFlag {
    /// The name as given, for error texts.
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// The flags of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Flags(BTreeMap<&'static str, GivenFlag>);

impl Flags {
    /// Returns a flag's value, by its first name.
    pub(super) fn value(&self, name: &str) -> Option<&GivenFlag> {
        self.0.get(name)
    }

    /// Returns true if a switch is on, by its first name.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|given| given.value == ON)
    }
}

const ON: &str = "true";

/// The parsed arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A request for help: `--help` or `-h`.
    Help,
    /// The flags, and the positional arguments.
    Arguments { flags: Flags, positional: Vec<&'a str> },
}

/// Parses the arguments of a tool with these groups of flags.
pub(super) fn parse<'a>(
    groups: &[&'static [Flag]],
    arguments: &'a [String],
) -> Result<Parsed<'a>, CallError> {
    let mut parser = Parser { groups, flags: Flags::default() };
    let mut positional = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            positional.extend(rest.map(String::as_str));
            break;
        }
        let help = match argument.strip_prefix("--") {
            Some(long) => parser.long(argument, long, &mut rest)?,
            None => match argument.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) => parser.letters(letters, &mut rest)?,
                None => {
                    positional.push(argument);
                    false
                }
            },
        };
        if help {
            return Ok(Parsed::Help);
        }
    }
    Ok(Parsed::Arguments { flags: parser.flags, positional })
}

struct Parser<'a> {
    groups: &'a [&'static [Flag]],
    flags: Flags,
}

impl Parser<'_> {
    /// Reads `--name`, `--name=value` or `--name value`. Returns true for `--help`.
    fn long<'a>(
        &mut self,
        argument: &str,
        long: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<bool, CallError> {
        if long.starts_with(['-', '=']) {
            return Err(CallError::invalid(format!("bad flag syntax: {argument}")));
        }
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let shown = format!("--{name}");
        let Some((flag, name)) = self.find(&shown) else {
            return if shown == "--help" { Ok(true) } else { Err(undefined(&shown)) };
        };
        match (flag.kind, value) {
            (Kind::Switch, None) => self.give(flag, name, ON.to_owned()),
            (Kind::Switch, Some(value)) => self.give(flag, name, read_truth(name, value)?.to_owned()),
            (Kind::Text(_) | Kind::Value(_), Some(value)) => self.give(flag, name, value.to_owned()),
            (Kind::Text(_) | Kind::Value(_), None) => {
                let value = rest.next().ok_or_else(|| lacks_argument(name))?;
                self.give(flag, name, value.clone());
            }
        }
        Ok(false)
    }

    /// Reads `-abc`: switches, of which the last may be a flag that takes the rest, or the next argument, as its
    /// value. Returns true for `-h`.
    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<bool, CallError> {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let shown = format!("-{letter}");
            let Some((flag, name)) = self.find(&shown) else {
                return if shown == "-h" { Ok(true) } else { Err(undefined(&shown)) };
            };
            match flag.kind {
                Kind::Switch => self.give(flag, name, ON.to_owned()),
                Kind::Text(_) | Kind::Value(_) => {
                    let value = match letters.as_str() {
                        "" => rest.next().ok_or_else(|| lacks_argument(name))?,
                        value => value,
                    };
                    self.give(flag, name, value.to_owned());
                    return Ok(false);
                }
            }
        }
        Ok(false)
    }

    fn find(&self, shown: &str) -> Option<(&'static Flag, &'static str)> {
        let mut flags = self.groups.iter().flat_map(|group| group.iter());
        flags.find_map(|flag| Some((flag, *flag.names.iter().find(|name| **name == shown)?)))
    }

    fn give(&mut self, flag: &'static Flag, name: &'static str, value: String) {
        if let Some(first) = flag.names.first() {
            self.flags.0.insert(first, GivenFlag { name, value });
        }
    }
}

/// Parses a boolean as Juju's tools do.
fn read_truth(name: &str, value: &str) -> Result<&'static str, CallError> {
    match truth::parse(value) {
        Some(true) => Ok(ON),
        Some(false) => Ok("false"),
        None => Err(CallError::invalid(format!("invalid boolean value {value:?} for option {name}"))),
    }
}

fn undefined(shown: &str) -> CallError {
    CallError::invalid(format!("option provided but not defined: {shown}"))
}

fn lacks_argument(name: &str) -> CallError {
    CallError::invalid(format!("option needs an argument: {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: &[Flag] = &[
        Flag { names: &["-r", "--relation"], kind: Kind::Value(Initial::Relation), help: "" },
        Flag { names: &["--app"], kind: Kind::Switch, help: "" },
        Flag { names: &["-a", "--all"], kind: Kind::Switch, help: "" },
    ];

    /// Shows the result as `r=VALUE(NAME) app all | positional ...`, `help`, or the error.
    fn check(line: &str) -> String {
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&[FLAGS], &arguments) {
            Ok(Parsed::Help) => "help".to_owned(),
            Ok(Parsed::Arguments { flags, positional }) => {
                let relation = flags.value("-r").map(|given| format!("r={}({})", given.value, given.name));
                let switch = |name: &str, shown: &str| flags.is_on(name).then(|| shown.to_owned());
                let words: Vec<_> =
                    [relation, switch("--app", "app"), switch("-a", "all")].into_iter().flatten().collect();
                format!("{} | {}", words.join(" "), positional.join(" "))
            }
            Err(error) => format!("{} {error}", error.exit_code()),
        }
    }

    #[test]
    fn all_spellings_of_a_flag_are_read() {
        for (line, expected) in [
            ("", " | "),
            ("x y", " | x y"),
            ("-r db:1 x", "r=db:1(-r) | x"),
            ("x -rdb:1", "r=db:1(-r) | x"),
            ("--relation db:1 x", "r=db:1(--relation) | x"),
            ("--relation=db:1=2", "r=db:1=2(--relation) | "),
            ("-r 1 -r 2", "r=2(-r) | "),
            ("-ar 1", "r=1(-r) all | "),
            ("x --app y", "app | x y"),
            ("--app=True", "app | "),
            ("--app --app=false", " | "),
            ("--app -- --all -r", "app | --all -r"),
            ("- x", " | - x"),
            ("-r -- x", "r=--(-r) | x"),
            ("x --help --nonsense", "help"),
            ("-ah", "help"),
        ] {
            assert_eq!(check(line), expected, "{line}");
        }
    }

    #[test]
    fn each_mistake_has_its_message() {
        for (line, expected) in [
            ("--x", "2 option provided but not defined: --x"),
            ("--x=1", "2 option provided but not defined: --x"),
            ("-ax", "2 option provided but not defined: -x"),
            ("-r", "2 option needs an argument: -r"),
            ("--relation", "2 option needs an argument: --relation"),
            ("--app=maybe", "2 invalid boolean value \"maybe\" for option --app"),
            ("---", "2 bad flag syntax: ---"),
            ("--=x", "2 bad flag syntax: --=x"),
        ] {
            assert_eq!(check(line), expected, "{line}");
        }
    }
}
