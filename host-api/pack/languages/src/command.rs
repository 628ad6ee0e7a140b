//! Calls of a language's tools.

use std::{
    io,
    process::{Command, Stdio},
};

use crate::CharmBuildError;

/// The lines of a failed tool's output that an error shows: the first and the last, since tools differ in where they
/// put the cause.
const FIRST_LINES: usize = 40;
const LAST_LINES: usize = 20;

/// A tool, and the purpose of running it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// The program's name in PATH.
    pub(crate) program: &'static str,
    /// The purpose: `to pack charms in JavaScript`.
    pub(crate) purpose: &'static str,
    /// The installation hint.
    pub(crate) hint: &'static str,
}

impl Tool {
    /// Creates a call of the tool.
    pub(crate) fn command(self) -> Command {
        Command::new(self.program)
    }

    /// Runs a call of the tool to its end.
    pub(crate) fn run(
        self,
        command: &mut Command,
        what: impl Into<String>,
    ) -> Result<ProgramOutput, CharmBuildError> {
        run(command, || self.missing(), what)
    }

    /// Returns the error for a missing tool.
    pub(crate) fn missing(self) -> CharmBuildError {
        let Self { program, purpose, hint } = self;
        CharmBuildError::MissingTool { program: program.to_owned(), purpose, hint }
    }
}

/// The output of a program that succeeded.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a program to its end. `missing` makes the error for a program that is not installed.
pub(crate) fn run(
    command: &mut Command,
    missing: impl FnOnce() -> CharmBuildError,
    what: impl Into<String>,
) -> Result<ProgramOutput, CharmBuildError> {
    let output = command.stdin(Stdio::null()).output().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => CharmBuildError::files(command.get_program())(source),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match output.status.success() {
        true => Ok(ProgramOutput { stdout, stderr }),
        false => {
            Err(CharmBuildError::Failed { what: what.into(), output: shown(&format!("{stdout}{stderr}")) })
        }
    }
}

/// Returns the first and the last lines of a text, without control characters, which could change a terminal.
fn shown(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    if lines.len() > FIRST_LINES + LAST_LINES + 1 {
        lines.splice(FIRST_LINES..lines.len() - LAST_LINES, ["..."]);
    }
    lines.join("\n").chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Tool = Tool { program: "sh", purpose: "to test", hint: "" };

    #[test]
    fn what_a_failed_tool_said_is_told_in_part_and_its_escapes_are_not() {
        let script = "seq 100; printf '\\033[31mred\\n' >&2; exit 3";
        let error = SHELL.run(SHELL.command().args(["-c", script]), "counting").unwrap_err().to_string();
        assert!(error.starts_with("counting failed\n1\n2\n"), "{error}");
        assert!(error.contains("\n40\n...\n82\n"), "{error}");
        assert!(error.ends_with("\n100\n[31mred"), "{error}");
    }

    #[test]
    fn a_tool_that_is_not_there_is_told_with_how_to_get_it() {
        let tool = Tool { program: "no-such-tool", purpose: "to test", hint: "look behind the sofa" };
        let error = tool.run(&mut tool.command(), "nothing").unwrap_err();
        assert_eq!(error.to_string(), "no-such-tool is needed to test, and is not installed");
        assert_eq!(error.hint(), Some("look behind the sofa"));
    }
}
