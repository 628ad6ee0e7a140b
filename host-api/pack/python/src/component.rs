//! Runs of `componentize-py`.

use std::{fs, os::unix::process::ExitStatusExt as _, path::Path};

use crate::{ImportFailure, PythonError, python::Python};

/// A Python program that runs `componentize-py`. Its arguments: the tool's directory, a limit of CPU time in seconds,
/// and the tool's own arguments. The limit is needed: the tool imports the charm's modules, and their code may never
/// end.
const RUN: &str = "import resource, sys
sys.path.insert(0, sys.argv.pop(1))
most = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_CPU, (most, most))
from componentize_py import script
sys.exit(script())";

/// The limit of CPU time for one component, in seconds. A component takes about 15.
const MOST_SECONDS: u32 = 600;

/// The directory below the stage for temporary files.
pub(crate) const TEMPORARY: &str = "temporary";

/// The directory in which a component is built, with the package `periapt_ops`, the charm and the contract below it.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) directory: &'a Path,
}

impl Stage<'_> {
    /// Builds the component from the charm in `charm`, the package in `shim` and the contract in `wit`.
    pub(crate) fn build(&self, python: &Python, tool: &Path, output: &Path) -> Result<(), PythonError> {
        // Without a virtual environment, the tool would add all packages of this machine's Python.
        let nothing = self.directory.join("site");
        let packages = nothing.join("lib/python3/site-packages");
        let temporary = self.directory.join(TEMPORARY);
        for directory in [&packages, &temporary] {
            fs::create_dir_all(directory)
                .map_err(|source| PythonError::Io { path: directory.clone(), source })?;
        }
        let done = python.output(
            python
                .command()
                .current_dir(self.directory)
                .env("VIRTUAL_ENV", &nothing)
                .env("TMPDIR", &temporary)
                .args(["-I", "-c", RUN])
                .arg(tool)
                .arg(MOST_SECONDS.to_string())
                .args(["--quiet", "-d", "wit", "-w", "python-charm", "componentize"])
                .args(["-p", "shim", "-p", "charm", "periapt_component", "-o"])
                .arg(output),
        )?;
        match done.status.success() && output.exists() {
            true => Ok(()),
            false => Err(PythonError::Import(match done.status.signal() {
                Some(signal) => ImportFailure::new(stopped(signal)),
                None => reason(&String::from_utf8_lossy(&done.stderr)),
            })),
        }
    }
}

/// Describes a build that a signal ended.
fn stopped(signal: i32) -> String {
    format!(
        "building it was stopped by signal {signal}: importing the charm may take no more than {MOST_SECONDS} s of CPU time"
    )
}

/// Extracts the charm's own error, which stands between two traces of the tool: one line with the place and the
/// exception, and Python's trace without this package's own calls. Warnings that were printed before are left out.
fn reason(stderr: &str) -> ImportFailure {
    let (_, from) = stderr.split_once("AssertionError: ").unwrap_or(("", stderr));
    let (text, causes) = from.split_once("\n\nCaused by:").unwrap_or((from, ""));
    let text = text.trim();
    if text.is_empty() {
        return without_exception(causes);
    }
    let Some(start) = text.find(TRACE) else { return of_lines(text) };
    let lines: Vec<&str> = text.get(start..).unwrap_or_default().lines().collect();
    let trace = without_own_calls(&lines);
    match exception(&lines) {
        Some([exception, ..]) => {
            let place = lines.iter().rev().find_map(|line| own_place(line));
            let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
            ImportFailure { cause: format!("{place}{exception}"), trace: trace.join("\n") }
        }
        _ => of_lines(&trace.join("\n")),
    }
}

/// Takes the first line of a message as the cause, and all of it as the trace.
fn of_lines(text: &str) -> ImportFailure {
    let cause = text.lines().next().unwrap_or_default().to_owned();
    ImportFailure { cause, trace: text.to_owned() }
}

/// Describes a build whose interpreter ended without an exception: the tool's last cause in one line, and the innermost
/// functions, which may name a native module.
fn without_exception(causes: &str) -> ImportFailure {
    let (causes, _) = causes.split_once("\n\nStack backtrace:").unwrap_or((causes, ""));
    let mut lines: Vec<&str> = causes.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.pop().unwrap_or("no cause is known");
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let cause =
        last.split_once(": ").filter(|(number, _)| is_number(number)).map_or(last, |(_, cause)| cause);
    let calls = lines.into_iter().filter(|line| line.contains('!')).take(SHOWN_CALLS);
    let cause = format!("the interpreter ended without an exception of Python's: {cause}");
    ImportFailure { cause, trace: calls.collect::<Vec<_>>().join("\n") }
}

/// The number of innermost calls that are shown of an interpreter that ended: a native module's are among the first.
const SHOWN_CALLS: usize = 8;

/// The first line of a trace of Python's.
const TRACE: &str = "Traceback (most recent call last):";

/// The beginning of a call's line in a trace.
const CALL: &str = "  File ";

/// Returns the lines of the exception that ended the import: they stand at the end of a trace.
fn exception<'a, 'b>(lines: &'b [&'a str]) -> Option<&'b [&'a str]> {
    let last = lines.iter().rposition(|line| line.starts_with(CALL))?;
    let after = lines.get(last..)?;
    let first = after.iter().position(|line| !line.starts_with(' ') && !line.is_empty())?;
    after.get(first..)
}

/// Returns the place FILE:LINE of a call in a trace if it is the charm's own code.
fn own_place(line: &str) -> Option<String> {
    let (file, rest) = line.strip_prefix("  File \"/charm/")?.split_once("\", line ")?;
    let number = rest.split(',').next()?;
    (file.starts_with("src/") || file.starts_with("lib/")).then(|| format!("{file}:{number}"))
}

/// Returns the lines of a trace without the calls from `periapt_ops` that precede the charm's.
fn without_own_calls<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut in_own_call = false;
    lines
        .iter()
        .filter(|line| {
            if line.starts_with(CALL) {
                in_own_call = line.starts_with("  File \"/0/periapt_");
            } else if !line.starts_with(' ') {
                in_own_call = false;
            }
            !in_own_call
        })
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(cause: &str, trace: &str) -> ImportFailure {
        ImportFailure { cause: cause.to_owned(), trace: trace.to_owned() }
    }

    #[test]
    fn a_failed_import_is_told_in_one_line_and_its_trace_apart() {
        let stderr = "Traceback (most recent call last):\n  File \"<string>\", line 1\nAssertionError: Traceback (most recent call last):\n  File \"/charm/src/charm.py\", line 3, in <module>\nZeroDivisionError: division by zero\n\n\nCaused by:\n    x\n\nStack backtrace:\n   0: y\n";
        let trace = "Traceback (most recent call last):\n  File \"/charm/src/charm.py\", line 3, in <module>\nZeroDivisionError: division by zero";
        assert_eq!(reason(stderr), failure("src/charm.py:3: ZeroDivisionError: division by zero", trace));
        assert_eq!(reason("no such file\n"), failure("no such file", "no such file"));
        let told = PythonError::Import(reason(stderr)).to_string();
        assert_eq!(
            told,
            "the charm cannot be imported in the sandbox: src/charm.py:3: ZeroDivisionError: division by zero"
        );
    }

    #[test]
    fn of_an_exception_without_calls_of_the_charms_the_first_line_is_the_cause() {
        let trace = |exception: &str| {
            let calls = "  File \"/0/periapt_component.py\", line 53, in <module>\n    PROGRAM = build.build(sys.path)\n  File \"/0/periapt_ops/build.py\", line 25, in build\n    from . import storage\n";
            format!("AssertionError: {TRACE}\n{calls}{exception}\n\nCaused by:\n    x")
        };
        let exception = "ModuleNotFoundError: No module named 'yaml'";
        assert_eq!(reason(&trace(exception)), failure(exception, &format!("{TRACE}\n{exception}")));
        let long = "own.Error: two causes\n - one\n - two";
        assert_eq!(reason(&trace(long)), failure("own.Error: two causes", &format!("{TRACE}\n{long}")));
        let chained = format!(
            "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n{TRACE}\n  File \"/0/periapt_ops/build.py\", line 25, in build\n{exception}"
        );
        assert_eq!(reason(&trace(&chained)).cause, exception);
    }

    #[test]
    fn an_interpreter_that_ends_without_an_exception_is_told_with_the_tools_cause() {
        let expected = "the interpreter ended without an exception of Python's: ";
        assert_eq!(reason(""), failure(&format!("{expected}no cause is known"), ""));
        let stderr = "Traceback (most recent call last):
  File \"<string>\", line 6, in <module>
AssertionError: \n
Caused by:
    0: error while executing at wasm backtrace:
           0:  0x1a962 - libc.so!abort
           1: 0x49963a - libpython3.14.so!os_abort
    1: wasm trap: wasm `unreachable` instruction executed

Stack backtrace:
   0: <anyhow::Error>::new";
        let calls = "0:  0x1a962 - libc.so!abort\n1: 0x49963a - libpython3.14.so!os_abort";
        let cause = format!("{expected}wasm trap: wasm `unreachable` instruction executed");
        assert_eq!(reason(stderr), failure(&cause, calls));
    }

    #[test]
    fn the_cause_names_the_charms_own_place_and_the_exception() {
        let stderr = r#"AssertionError: /charm/venv/old/__init__.py:35: Warning: old
  warnings.warn(
Traceback (most recent call last):
  File "/0/periapt_component.py", line 53, in <module>
    PROGRAM = build.build(sys.path)
  File "/0/periapt_ops/charm.py", line 56, in load
    exec(code)
    ~~~~^^^^^^
  File "/charm/src/charm.py", line 4, in <module>
    from driver.cluster import Cluster
  File "/charm/venv/driver/cluster.py", line 174, in <module>
    raise DependencyException("Unable to load", causes)
driver.DependencyException: Unable to load
The following exceptions were observed:
 - No extension

Caused by:
    x"#;
        let trace = r#"Traceback (most recent call last):
  File "/charm/src/charm.py", line 4, in <module>
    from driver.cluster import Cluster
  File "/charm/venv/driver/cluster.py", line 174, in <module>
    raise DependencyException("Unable to load", causes)
driver.DependencyException: Unable to load
The following exceptions were observed:
 - No extension"#;
        assert_eq!(
            reason(stderr),
            failure("src/charm.py:4: driver.DependencyException: Unable to load", trace)
        );
    }
}
