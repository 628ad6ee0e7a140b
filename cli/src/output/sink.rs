//! Where output goes.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use super::{ColorChoice, Text, escape::continued_in_color, file, text::Reader};
use crate::error::{Explain as _, Result};

/// What clears a terminal, and what it remembers.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

/// Standard output, or a file: a place that a person looks at, or one that a program reads.
pub(crate) struct Sink {
    writer: Box<dyn Write>,
    reader: Reader,
}

impl Sink {
    /// Opens it. What is there is written to if it is no ordinary file.
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

    /// Whether a terminal shows it.
    pub(crate) fn is_watched(&self) -> bool {
        self.reader.is_terminal
    }

    /// Writes a text, at once.
    pub(crate) fn write(&mut self, text: impl Into<Text>) -> Result<()> {
        let text = text.into();
        self.writer.write_all(text.written(self.reader).as_bytes())?;
        Ok(self.writer.flush()?)
    }

    /// Clears the terminal that shows it.
    pub(crate) fn clear(&mut self) -> Result<()> {
        if self.reader.is_terminal {
            self.writer.write_all(CLEAR.as_bytes())?;
        }
        Ok(())
    }
}

/// Tells a person what happened, beside the output: on standard error, in one piece.
pub(crate) fn note(text: impl std::fmt::Display) {
    // Where nobody reads it, nobody misses it.
    let _ = tell(&format!("{text}\n"));
}

/// Tells a person something on standard error, without ending the line.
pub(crate) fn tell(text: &str) -> io::Result<()> {
    let mut output = io::stderr().lock();
    output.write_all(Text::from(text).as_bytes())?;
    output.flush()
}

/// Tells the process that started this one something on standard output: a line of this program's own.
pub(crate) fn announce(line: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes())?;
    output.flush()
}

/// Writes what somebody else left in standard output's buffer.
pub(crate) fn flush() -> io::Result<()> {
    io::stdout().flush()
}

/// Prints help or a version: as output if it was asked for, beside the output if a command line without a command gets it.
pub(crate) fn usage(error: &clap::Error) -> Result<()> {
    let told = error.render();
    if !error.use_stderr() {
        return Sink::new(None, ColorChoice::Auto)?.write(Text::clean(told.ansi().to_string()));
    }
    // As for notes: the exit code says it, too.
    let _ = tell(&told.to_string());
    Ok(())
}

/// Whether a terminal shows standard output.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Whether a terminal shows what is told beside the output.
pub(crate) fn is_seen() -> bool {
    io::stderr().is_terminal()
}

/// Takes the lines of the log, an event each, to standard error.
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
