//! Juju's hook tools, for calls without a typed function and for ported charms.

use crate::{Error, Result, host};

/// The output of a hook tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The exit code: 0 for success, 1 for a failure while running, 2 for bad arguments.
    pub code: u8,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Output {
    /// Returns the standard output of a tool that succeeded.
    ///
    /// # Errors
    ///
    /// When the exit code is not 0: the tool's message.
    pub fn success(self) -> Result<String> {
        if self.code == 0 {
            return Ok(self.stdout);
        }
        let message = self.stderr.trim().trim_start_matches("ERROR ").to_owned();
        Err(Error::new(message))
    }
}

/// Runs a hook tool: `tool("relation-get", ["--format=json", "-", "mysql/0"])`.
pub fn tool<A: Into<String>>(name: &str, args: impl IntoIterator<Item = A>) -> Output {
    run(name, args.into_iter().map(Into::into).collect(), None)
}

/// Runs a hook tool that reads its standard input: `tool_reading("relation-set", ["--file", "-"], b"port: 80")`.
pub fn tool_reading<A: Into<String>>(
    name: &str,
    args: impl IntoIterator<Item = A>,
    stdin: impl AsRef<[u8]>,
) -> Output {
    run(name, args.into_iter().map(Into::into).collect(), Some(stdin.as_ref()))
}

fn run(name: &str, args: Vec<String>, stdin: Option<&[u8]>) -> Output {
    let output = host::hook_tools::run(name, &args, stdin);
    Output {
        code: output.exit_code,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
