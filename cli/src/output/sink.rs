//! Destinations of output.

use std::{
    io::{self, IsTerminal as _, Write},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use super::{ColorChoice, Text, escape::continued_in_color, file, text::Reader};
use crate::error::{Explain as _, Result};

/// The sequence that clears a terminal and its scroll-back.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Standard output, or a file: a terminal for people, or a stream for programs.
pub(crate) struct Sink {
    writer: Box<dyn Write>,
    reader: Reader,
}

impl Sink {
    /// Opens it. An existing file that is no ordinary file is written to.
    pub(crate) fn new(file: Option<&Path>, color: ColorChoice) -> Result<Self> {
        if let Some(path) = file {
            let (writer, is_terminal) =
                file::opened(path).explain(|| format!("cannot write {}", path.display()))?;
            return Ok(Self { writer, reader: Reader { is_terminal, is_colored: false } });
        }
        let output = io::stdout();
        let is_colored = match color.into() {
            anstream::ColorChoice::Auto => {
                anstream::AutoStream::choice(&output) != anstream::ColorChoice::Never
            }
            choice => choice != anstream::ColorChoice::Never,
        };
        let reader = Reader { is_terminal: output.is_terminal(), is_colored };
        Ok(Self { writer: Box::new(output), reader })
    }

    /// Returns true if it is a terminal.
    pub(crate) fn is_watched(&self) -> bool {
        self.reader.is_terminal
    }

    /// Writes a text, and flushes it.
    pub(crate) fn write(&mut self, text: impl Into<Text>) -> Result<()> {
        let text = text.into();
        self.writer.write_all(text.written(self.reader).as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Clears the terminal.
    pub(crate) fn clear(&mut self) -> Result<()> {
        if self.reader.is_terminal {
            self.writer.write_all(CLEAR.as_bytes())?;
        }
        Ok(())
    }
}

/// Returns a copy of standard output, where it is no place for output but a file that this process holds for another.
pub(crate) fn inherited() -> io::Result<OwnedFd> {
    io::stdout().as_fd().try_clone_to_owned()
}

/// Prints a message for the operator on standard error, in one piece.
pub(crate) fn note(text: impl std::fmt::Display) {
    // Without a reader nothing is lost.
    let _ = write_error(&format!("{text}\n"));
}

/// Prints a text on standard error, without a line break.
pub(crate) fn write_error(text: &str) -> io::Result<()> {
    let mut output = io::stderr().lock();
    output.write_all(Text::from(text).as_bytes())?;
    output.flush()
}

/// Prints a line of this program's own on standard output, for the process that started this one.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes())?;
    output.flush()
}

/// Flushes standard output, after writes by another library.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// Prints help or a version: on standard output on request, on standard error for a command line without a command.
pub(crate) fn usage(error: &clap::Error) -> Result<()> {
    let told = error.render();
    if !error.use_stderr() {
        return Sink::new(None, ColorChoice::Auto)?.write(Text::clean(told.ansi().to_string()));
    }
    // An error of standard error needs no message; the exit code tells the failure.
    let _ = write_error(&told.to_string());
    Ok(())
}

/// Returns true if standard output is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Returns true if standard error is a terminal.
pub(crate) fn is_seen() -> bool {
    io::stderr().is_terminal()
}

/// A writer that passes the log's lines, one for each event, to standard error.
#[derive(Debug)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = continued_in_color(String::from_utf8_lossy(event).trim_end_matches('\n'));
        io::stderr().lock().write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
