//! The input of commands: files and standard input, each with a bound.
//!
//! A text that an option names may come from any source that ends, such as `<(command)` or `/dev/stdin`. A deployed
//! file must be a regular one, so that no read waits for a writer.

use std::{
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, Read},
    os::{
        fd::AsFd as _,
        unix::{fs::OpenOptionsExt as _, net::UnixStream},
    },
    path::Path,
    thread,
};

use periapt_host_api::exec_session::TerminalSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::error::{Explain as _, Failure, Result};

/// The largest text in bytes: settings, parameters, a bundle. The controller accepts less of each.
pub(crate) const MAX_TEXT: u64 = 16 << 20;

/// The longest answer to a question, in bytes.
const MAX_ANSWER: u64 = 1 << 10;

/// Reads a text from any source.
pub(crate) fn text(path: &Path) -> Result<String> {
    text_within(path, MAX_TEXT)
}

/// Reads a text from any source, or from standard input for `-`.
pub(crate) fn text_or_stdin(path: &Path) -> Result<String> {
    match path.as_os_str() == "-" {
        true => in_utf8(within(io::stdin().lock(), MAX_TEXT, &"standard input")?, &"standard input"),
        false => text(path),
    }
}

/// Reads at most `most` bytes of standard input, to its end.
pub(crate) fn stdin(most: u64) -> Result<Vec<u8>> {
    within(io::stdin().lock(), most, &"standard input")
}

/// Returns the connected socket that the process which started this one gave it as its standard input. Nothing is read.
pub(crate) fn inherited_socket() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.peer_addr()?;
    Ok(socket)
}

/// Reads a text of at most `most` bytes.
pub(crate) fn text_within(path: &Path, most: u64) -> Result<String> {
    in_utf8(bytes(path, most)?, &path.display())
}

/// Reads at most `most` bytes from any source.
pub(crate) fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = File::open(path).explain(|| format!("cannot read {}", path.display()))?;
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    match length > most {
        true => Err(too_large(&path.display(), most)),
        false => within(file, most, &path.display()),
    }
}

/// Opens a regular file. A FIFO is refused, so the call never waits for a writer.
pub(crate) fn regular(path: &Path) -> Result<File> {
    let failed = || format!("cannot read {}", path.display());
    let not_regular = || Failure::new(format!("{} is not a regular file", path.display()));
    // Opening a device may have effects.
    if !fs::metadata(path).explain(failed)?.is_file() {
        return Err(not_regular());
    }
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).explain(failed)?;
    match file.metadata().explain(failed)?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

/// Reads at most `most` bytes of a regular file.
pub(crate) fn regular_bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    within(regular(path)?, most, &path.display())
}

/// Reads a text from a regular file.
pub(crate) fn regular_text(path: &Path) -> Result<String> {
    in_utf8(regular_bytes(path, MAX_TEXT)?, &path.display())
}

/// Reads at most `most` bytes from the end of a file, after `from`. An unreadable file is empty.
pub(crate) fn tail(path: &Path, from: u64, most: u64) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        io::Seek::seek(&mut file, io::SeekFrom::Start(from.max(length.saturating_sub(most))))?;
        let mut tail = Vec::new();
        file.take(most).read_to_end(&mut tail)?;
        Ok(tail)
    };
    read().unwrap_or_default()
}

/// Iterates over the lines of standard input, each of at most `most` bytes.
pub(crate) fn lines(most: u64) -> impl Iterator<Item = Result<String>> {
    let mut input = io::stdin().lock();
    std::iter::from_fn(move || line(&mut input, most).transpose())
}

fn line(input: &mut impl BufRead, most: u64) -> Result<Option<String>> {
    const WHAT: &str = "a line of standard input";
    let mut line = Vec::new();
    let read = input.take(most.saturating_add(1)).read_until(b'\n', &mut line);
    match read.explain(|| "cannot read standard input".to_owned())? as u64 {
        0 => Ok(None),
        length if length > most => Err(too_large(&WHAT, most)),
        _ => in_utf8(line, &WHAT).map(Some),
    }
}

/// Returns true if standard input is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdin())
}

/// Returns the size of the terminal at standard input; none if it is no terminal, or tells no size.
pub(crate) fn terminal_size() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdin()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(TerminalSize { columns: size.ws_col, rows: size.ws_row })
}

/// The terminal at standard input while each key goes elsewhere as it is typed, Ctrl-C too. Dropping it restores the
/// terminal.
#[derive(Debug)]
pub(crate) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(crate) fn enter() -> Result<Self> {
        let terminal = io::stdin();
        let cannot = || "cannot take the keys of the terminal".to_owned();
        let before = tcgetattr(&terminal).explain(cannot)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).explain(cannot)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Begins to read standard input in pieces of at most `most` bytes, each once the one before was taken. The pieces end
/// with the input.
pub(crate) fn pieces(most: usize) -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, pieces) = mpsc::channel(1);
    // A read cannot be given up: the thread ends with the input, or with the process.
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut piece = vec![0; most];
            let read = match input.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => {
                    piece.truncate(length);
                    Ok(piece)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = read.is_err();
            if sender.blocking_send(read).is_err() || is_last {
                return;
            }
        }
    });
    pieces
}

/// Waits for standard input. Returns true if it has a byte, false if it ends.
pub(crate) fn has_word() -> bool {
    io::stdin().lock().read_exact(&mut [0]).is_ok()
}

/// Reads an operator's answer, without a line break if the input ends.
pub(crate) fn answer() -> io::Result<String> {
    answer_within(MAX_ANSWER)
}

/// Reads an operator's answer of at most `most` bytes.
pub(crate) fn answer_within(most: u64) -> io::Result<String> {
    let mut answer = String::new();
    io::stdin().lock().take(most).read_line(&mut answer)?;
    Ok(answer)
}

fn within(input: impl Read, most: u64, what: &dyn fmt::Display) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = input.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.explain(|| format!("cannot read {what}"))?;
    match bytes.len() as u64 > most {
        true => Err(too_large(what, most)),
        false => Ok(bytes),
    }
}

fn in_utf8(bytes: Vec<u8>, what: &dyn fmt::Display) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("cannot read {what}: it is not UTF-8 text")))
}

fn too_large(what: &dyn fmt::Display, most: u64) -> Failure {
    let most = match (most >> 20, most % (1 << 20)) {
        (mebibytes @ 1.., 0) => format!("{mebibytes} MiB"),
        _ => format!("{most} bytes"),
    };
    Failure::new(format!("{what} is larger than the limit of {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_read_up_to_a_bound() {
        let zeros = Path::new("/dev/zero");
        let error = text(zeros).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero is larger than the limit of 16 MiB");
        let error = bytes(zeros, 1_000).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero is larger than the limit of 1000 bytes"), "{error}");
        let error = regular_bytes(zeros, 1_000).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero is not a regular file");
    }

    #[test]
    fn a_fifo_is_waited_for_by_texts_alone() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(regular(&fifo).unwrap_err().to_string().ends_with("fifo is not a regular file"));
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::write(fifo, "a: 1").unwrap()
        });
        assert_eq!(text(&fifo).unwrap(), "a: 1");
        writer.join().unwrap();
    }

    #[test]
    fn a_bound_is_what_is_still_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("text");
        fs::write(&path, "four").unwrap();
        assert_eq!(text_within(&path, 4).unwrap(), "four");
        assert!(text_within(&path, 3).is_err());
        assert_eq!(regular_bytes(&path, 4).unwrap(), b"four");
        assert!(regular_bytes(&path, 3).is_err());
        assert_eq!(tail(&path, 1, 2), b"ur");
        assert_eq!(tail(&path, 3, 2), b"r");
        fs::write(&path, b"\xff").unwrap();
        assert!(text(&path).unwrap_err().to_string().ends_with("it is not UTF-8 text"));
    }

    #[test]
    fn lines_are_bounded_one_by_one() {
        let mut input = io::Cursor::new("ab\ncd\nefgh");
        assert_eq!(line(&mut input, 3).unwrap().as_deref(), Some("ab\n"));
        assert_eq!(line(&mut input, 3).unwrap().as_deref(), Some("cd\n"));
        assert!(line(&mut input, 3).is_err());
        assert_eq!(line(&mut io::Cursor::new(""), 3).unwrap(), None);
    }
}
