//! The name of this program: hints and examples use the name by which it was called. Juju's clients and users' habits
//! call it by a link named `juju`.

use std::{
    borrow::Cow,
    ffi::{CString, OsStr},
    path::Path,
    sync::OnceLock,
};

/// Its own name, in which all texts are written.
pub(crate) const OWN: &str = "periapt";

/// The path of this program's file, by which it starts itself again. A process whose file was replaced or removed
/// starts others of the same version.
pub(crate) const FILE: &str = "/proc/self/exe";

static NAME: OnceLock<String> = OnceLock::new();

/// Records the name by which it was called: the last part of the first argument. The first call counts.
pub(crate) fn called_by(argument: Option<&OsStr>) {
    if let Some(name) = argument.and_then(name_in) {
        let _ = NAME.set(name);
    }
}

/// Sets this program's name in process listings, if it was started by [`FILE`].
pub(crate) fn name_process() {
    let by_file = Path::new(FILE).file_name().map(OsStr::as_encoded_bytes);
    if rustix::thread::name().is_ok_and(|name| Some(name.as_bytes()) == by_file)
        && let Ok(own) = CString::new(OWN)
    {
        // The name is for people alone, so an error does not matter.
        let _ = rustix::thread::set_name(&own);
    }
}

/// Returns the name by which it was called.
pub(crate) fn name() -> &'static str {
    NAME.get().map_or(OWN, String::as_str)
}

/// Returns a text for people, in which commands have the name by which this program was called.
pub(crate) fn spelled(text: &str) -> Cow<'_, str> {
    spelled_as(text, name())
}

/// Returns a name that can be typed as it is. Others are not shown.
fn name_in(argument: &OsStr) -> Option<String> {
    let name = Path::new(argument).file_name()?.to_str()?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    (!name.is_empty() && name.len() <= 64 && name.chars().all(plain)).then(|| name.to_owned())
}

fn spelled_as<'a>(text: &'a str, name: &str) -> Cow<'a, str> {
    if name == OWN || !text.contains(OWN) {
        return Cow::Borrowed(text);
    }
    let mut spelled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OWN) {
        spelled.push_str(before);
        spelled.push_str(if begins_command(&spelled) && goes_on_as_command(after) { name } else { OWN });
        rest = after;
    }
    spelled.push_str(rest);
    Cow::Owned(spelled)
}

/// Returns true if the text before a word makes it the first of a command: a quote, a line's beginning, an indentation,
/// or an operator that joins commands.
fn begins_command(before: &str) -> bool {
    let quoted = before.is_empty() || before.ends_with(['`', '\'', '\n', '\t']);
    quoted || ["  ", "& ", "| ", "$ "].iter().any(|end| before.ends_with(end))
}

/// Returns true if a verb or an option follows.
fn goes_on_as_command(after: &str) -> bool {
    let mut letters = after.chars();
    letters.next() == Some(' ')
        && letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_text_begin_with_the_name_by_which_the_program_was_called() {
        for (text, expected) in [
            ("`periapt models` lists them", "`juju models` lists them"),
            ("use 'periapt show-task' to inspect it", "use 'juju show-task' to inspect it"),
            ("Now you can run\n\tperiapt add-model <name>\n", "Now you can run\n\tjuju add-model <name>\n"),
            ("Examples:\n  periapt deploy ./a\n", "Examples:\n  juju deploy ./a\n"),
            ("cd a && periapt pack a | periapt status", "cd a && juju pack a | juju status"),
            ("periapt run UNIT... ACTION", "juju run UNIT... ACTION"),
            ("Usage: periapt", "Usage: periapt"),
            ("cloud periapt has no regions", "cloud periapt has no regions"),
            ("set it in ~/.local/share/periapt first", "set it in ~/.local/share/periapt first"),
            ("`periapt`", "`periapt`"),
        ] {
            assert_eq!(spelled_as(text, "juju"), expected);
            assert_eq!(spelled_as(text, OWN), text);
        }
    }

    #[test]
    fn a_name_is_the_last_part_of_a_path_that_can_be_typed() {
        for (argument, expected) in [
            ("/usr/bin/juju", Some("juju")),
            ("./periapt-0.1", Some("periapt-0.1")),
            ("a b", None),
            ("", None),
            ("/tmp/\u{1b}[31m", None),
        ] {
            assert_eq!(name_in(OsStr::new(argument)).as_deref(), expected, "{argument}");
        }
    }
}
