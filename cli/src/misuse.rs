//! The answer to an invalid command line.

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::{
    error::{MISUSE, Result},
    output::{note, usage},
};

/// Answers a command line that could not be parsed, or that asks for help or a version: with that text, or with an
/// error, `ERROR` first.
///
/// # Errors
/// The help cannot be written.
pub(crate) fn answer(error: &clap::Error) -> Result<ExitCode> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        usage(error)?;
        return Ok(u8::try_from(error.exit_code()).unwrap_or(MISUSE).into());
    }
    note(text(error));
    Ok(MISUSE.into())
}

fn text(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let said = rendered.strip_prefix("error: ").unwrap_or(&rendered).trim_end();
    format!("ERROR {said}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar;

    #[test]
    fn what_the_parser_refuses_is_an_error_as_all_others_are() {
        for (line, expected) in [
            (&["no-such-command"][..], "ERROR unrecognized subcommand 'no-such-command'"),
            (&["deploy"], "ERROR the following required arguments were not provided"),
            (&["status", "--no-such-option"], "ERROR unexpected argument '--no-such-option' found"),
            (&["add-unit", "a", "-n", "0"], "ERROR invalid value '0' for '--num-units <COUNT>'"),
        ] {
            let error = grammar::read(&[&["periapt"], line].concat()).map(drop).unwrap_err();
            assert!(text(&error).starts_with(expected), "{}", text(&error));
        }
    }
}
