//! Running the tools of a language.

use std::{
    io,
    process::{Command, Stdio},
};

use crate::BuildError;

/// How much of what a failed tool said is shown: its beginning and its end, since some say first what counts and some last.
const FIRST_LINES: usize = 20;
const LAST_LINES: usize = 20;

/// A tool, and why it is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Its name in PATH.
    pub(crate) program: &'static str,
    /// `to pack charms in JavaScript`
    pub(crate) purpose: &'static str,
    /// How to get it.
    pub(crate) hint: &'static str,
}

impl Tool {
    /// A call of it, which nobody can answer.
    pub(crate) fn command(self) -> Command {
        let mut command = Command::new(self.program);
        command.stdin(Stdio::null());
        command
    }

    /// Runs it to its end; what it prints on standard output.
    pub(crate) fn run(self, command: &mut Command, what: impl Into<String>) -> Result<String, BuildError> {
        let output = command.output().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => self.missing(),
            _ => BuildError::Failed { what: what_of(command), output: source.to_string() },
        })?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        let said = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
        Err(BuildError::Failed { what: what.into(), output: shown(&said) })
    }

    /// That it is not there.
    pub(crate) fn missing(self) -> BuildError {
        let Self { program, purpose, hint } = self;
        BuildError::MissingTool { program: program.to_owned(), purpose, hint }
    }
}

fn what_of(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// The first and the last lines of a text, without control characters that could do something to a terminal.
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
        assert!(error.contains("\n20\n...\n82\n"), "{error}");
        assert!(error.ends_with("\n100\n[31mred"), "{error}");
    }

    #[test]
    fn a_tool_that_is_not_there_is_told_with_how_to_get_it() {
        let tool = Tool { program: "no-such-tool", purpose: "to test", hint: "look behind the sofa" };
        let error = tool.run(&mut tool.command(), "nothing").unwrap_err();
        assert_eq!(error.to_string(), "no-such-tool is needed to test, and is not there");
        assert_eq!(error.hint(), Some("look behind the sofa"));
    }
}
