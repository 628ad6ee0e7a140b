//! Variables, options, the directory and the host's name.

use super::call::Call;
use crate::{
    FileKind,
    interpreter::{Step, Unwind},
    parser::name_length,
};

/// Runs `export NAME[=VALUE]...`.
pub(super) fn export(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let mut code = 0;
    for argument in call.arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (argument.as_str(), None),
        };
        if !is_name(name) {
            code = call.fail(1, &format!("{name}: not a valid identifier"))?;
            continue;
        }
        call.shell.pay(argument.len())?;
        if let Some(value) = value {
            call.shell.scope.set(name, value.to_owned());
        }
        call.shell.scope.export(name);
    }
    Ok(code)
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name_length(name) == name.len()
}

/// Runs `unset NAME...`.
pub(super) fn unset(call: &mut Call<'_>) -> Result<u8, Unwind> {
    for name in call.arguments.iter().filter(|argument| !argument.starts_with('-')) {
        call.shell.scope.unset(name);
    }
    Ok(0)
}

/// Runs `set -e`, `-u`, `-x`, `-f`, `-o pipefail` and so on, with `+` to switch off; or sets the
/// arguments.
pub(super) fn set(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        let (on, letters) = match (argument.strip_prefix('-'), argument.strip_prefix('+')) {
            (Some("-"), _) => {
                let rest: Vec<String> = arguments.cloned().collect();
                return Ok(become_arguments(call, &rest));
            }
            (Some(letters), _) => (true, letters),
            (_, Some(letters)) => (false, letters),
            (None, None) => {
                let rest: Vec<String> = std::iter::once(argument).chain(arguments).cloned().collect();
                return Ok(become_arguments(call, &rest));
            }
        };
        for letter in letters.chars() {
            let name = if letter == 'o' { arguments.next().map(String::as_str) } else { None };
            let scope = &mut call.shell.scope;
            match (letter, name) {
                ('e', _) | (_, Some("errexit")) => scope.exit_on_failure = on,
                ('u', _) | (_, Some("nounset")) => scope.refuse_unset = on,
                ('x', _) | (_, Some("xtrace")) => scope.trace = on,
                ('f', _) | (_, Some("noglob")) => scope.no_globs = on,
                (_, Some("pipefail")) => scope.pipe_fails = on,
                (letter, name) => {
                    let shown = name.map_or_else(|| format!("-{letter}"), |name| format!("-o {name}"));
                    return call.fail(2, &format!("option {shown} is not supported"));
                }
            }
        }
    }
    Ok(0)
}

fn become_arguments(call: &mut Call<'_>, arguments: &[String]) -> u8 {
    call.shell.scope.arguments.truncate(1);
    call.shell.scope.arguments.extend_from_slice(arguments);
    0
}

/// Runs `printenv [NAME...]`.
pub(super) fn printenv(call: &mut Call<'_>) -> Result<u8, Unwind> {
    if call.arguments.is_empty() {
        return show_environment(call);
    }
    let mut code = 0;
    for name in call.arguments {
        let Some(length) = call.shell.scope.exported_value(name).map(str::len) else {
            code = 1;
            continue;
        };
        call.shell.pay(length)?;
        let line = format!("{}\n", call.shell.scope.exported_value(name).unwrap_or_default());
        call.say(&line)?;
    }
    Ok(code)
}

pub(super) fn show_environment(call: &mut Call<'_>) -> Result<u8, Unwind> {
    call.shell.pay_for_scope()?;
    let lines: String =
        call.shell.scope.exported().map(|(name, value)| format!("{name}={value}\n")).collect();
    call.say(&lines)?;
    Ok(0)
}

/// Runs `cd [DIRECTORY]`.
pub(super) fn cd(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let to = call.arguments.iter().find(|argument| *argument != "--").map_or("/charm", String::as_str);
        let path = call.shell.path(to);
        match call.shell.kind(to).await? {
            Ok(FileKind::Directory) => {
                call.shell.scope.set("PWD", path.clone());
                call.shell.scope.directory = path;
                Ok(0)
            }
            Ok(FileKind::File) => call.fail(1, &format!("{to}: Not a directory")),
            Err(error) => call.fail(1, &format!("{to}: {error}")),
        }
    })
}

pub(super) fn pwd(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let line = format!("{}\n", call.shell.scope.directory);
    call.say(&line)?;
    Ok(0)
}

/// Runs `hostname [-s] [-f]`, which prints the unit's host name.
pub(super) fn hostname(call: &mut Call<'_>) -> Result<u8, Unwind> {
    if call.arguments.iter().any(|argument| !matches!(argument.as_str(), "-s" | "-f")) {
        return call.fail(1, "only its name is known: -s and -f are the same");
    }
    let line = format!("{}\n", call.shell.hostname);
    call.say(&line)?;
    Ok(0)
}
