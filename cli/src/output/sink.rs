//! Destinations of output.

use std::{
    io::{self, IsTerminal as _, Write},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    thread,
};

use tokio::sync::{mpsc, oneshot};

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

/// A stream of a command elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassedStream {
    /// Standard output, or the command's terminal.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The form in which the output of a command elsewhere is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassedForm {
    /// Byte for byte: the operator has handed the terminal over to the command.
    Terminal,
    /// Byte for byte to programs and files. On a terminal it is text, which cannot steer it.
    Streams,
}

/// The output of a command elsewhere, which a thread writes as it comes: a reader that is slow holds up the command, and
/// not this process.
pub(crate) struct PassedOutput {
    pieces: mpsc::Sender<(PassedStream, Vec<u8>)>,
    written: oneshot::Receiver<io::Result<()>>,
}

impl PassedOutput {
    /// Starts the thread.
    pub(crate) fn start(form: PassedForm) -> Self {
        let (pieces, mut waiting) = mpsc::channel::<(PassedStream, Vec<u8>)>(1);
        let (ended, written) = oneshot::channel();
        thread::spawn(move || {
            let mut result = Ok(());
            // The beginnings of characters whose ends have not come yet.
            let (mut of_stdout, mut of_stderr) = (Vec::new(), Vec::new());
            while let Some((stream, bytes)) = waiting.blocking_recv() {
                let rest = match stream {
                    PassedStream::Stdout => &mut of_stdout,
                    PassedStream::Stderr => &mut of_stderr,
                };
                rest.extend_from_slice(&bytes);
                let end = match form {
                    PassedForm::Terminal => rest.len(),
                    PassedForm::Streams => end_of_characters(rest),
                };
                let whole: Vec<u8> = rest.drain(..end).collect();
                result = pass(stream, &whole, form);
                if result.is_err() {
                    break;
                }
            }
            for (stream, rest) in [(PassedStream::Stdout, of_stdout), (PassedStream::Stderr, of_stderr)] {
                if result.is_ok() && !rest.is_empty() {
                    result = pass(stream, &rest, form);
                }
            }
            // No more is taken; nobody waits for a process that ends at once.
            drop(waiting);
            let _ = ended.send(result);
        });
        Self { pieces, written }
    }

    /// Writes a piece, once the one before is written. Returns false if no more can be written: [`finish`](Self::finish)
    /// has the error.
    pub(crate) async fn write(&self, stream: PassedStream, bytes: Vec<u8>) -> bool {
        self.pieces.send((stream, bytes)).await.is_ok()
    }

    /// Waits until all is written.
    pub(crate) async fn finish(self) -> io::Result<()> {
        drop(self.pieces);
        // The thread ends without a result only if it panics.
        self.written.await.unwrap_or_else(|_| Err(io::Error::other("the output is not written")))
    }
}

/// Returns the length of bytes without a character of UTF-8 at their end that is not whole yet.
fn end_of_characters(bytes: &[u8]) -> usize {
    let mut tail = (bytes.len().saturating_sub(3)..bytes.len()).rev();
    let last = tail.find(|at| bytes.get(*at).is_some_and(|byte| *byte >= 0xc0));
    match last.and_then(|at| Some((at, bytes.get(at..)?))) {
        Some((at, rest)) if std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none()) => at,
        _ => bytes.len(),
    }
}

fn pass(stream: PassedStream, bytes: &[u8], form: PassedForm) -> io::Result<()> {
    match stream {
        PassedStream::Stdout => pass_to(&mut io::stdout().lock(), bytes, form),
        PassedStream::Stderr => pass_to(&mut io::stderr().lock(), bytes, form),
    }
}

fn pass_to(writer: &mut (impl Write + io::IsTerminal), bytes: &[u8], form: PassedForm) -> io::Result<()> {
    match form {
        PassedForm::Streams if writer.is_terminal() => {
            writer.write_all(Text::from(&*String::from_utf8_lossy(bytes)).as_bytes())?;
        }
        PassedForm::Streams | PassedForm::Terminal => writer.write_all(bytes)?,
    }
    writer.flush()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_at_whole_characters() {
        for (bytes, end) in [
            (&b""[..], 0),
            (b"abc", 3),
            ("ü".as_bytes(), 2),
            (b"a\xc3", 1),
            (b"\xe2\x82", 0),
            (b"ab\xf0\x9f\x98", 2),
            ("ab😀".as_bytes(), 6),
            // No text: nothing is held back.
            (b"a\x82\x82\x82", 4),
            (b"\xff\xff", 2),
        ] {
            assert_eq!(end_of_characters(bytes), end, "{bytes:?}");
        }
    }
}
