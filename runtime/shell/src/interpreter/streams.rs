//! Input and output streams of commands.

use std::collections::BTreeMap;

use super::{Shell, Unwind};
use crate::channel::Stream;

/// A command's three streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) stdin: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
}

impl Streams {
    /// Returns the first streams of a script, whose input is empty.
    pub(super) fn of_script() -> Self {
        let script = Output::Script;
        Self { stdin: Input::Nothing, stdout: script(Stream::Stdout), stderr: script(Stream::Stderr) }
    }
}

/// The source of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Nothing,
    Buffer(u64),
}

/// The target of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Nothing,
    Script(Stream),
    Buffer(u64),
}

/// The buffers of pipes, substitutions and redirected files.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    open: BTreeMap<u64, Buffer>,
    next: u64,
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// The number of bytes that were read.
    at: usize,
}

impl Buffers {
    pub(super) fn open(&mut self, bytes: Vec<u8>) -> u64 {
        self.next += 1;
        self.open.insert(self.next, Buffer { bytes, at: 0 });
        self.next
    }

    /// Closes a buffer, and returns its content.
    pub(super) fn close(&mut self, number: u64) -> Vec<u8> {
        self.open.remove(&number).map(|buffer| buffer.bytes).unwrap_or_default()
    }
}

impl Shell {
    /// Writes output of a command.
    pub(crate) fn write(&mut self, output: Output, bytes: &[u8]) -> Result<(), Unwind> {
        self.pay(bytes.len())?;
        match output {
            Output::Nothing => {}
            Output::Script(stream) => self.channel.write(stream, bytes),
            Output::Buffer(number) => {
                let Some(buffer) = self.buffers.open.get_mut(&number) else { return Ok(()) };
                self.meter.check(buffer.bytes.len().saturating_add(bytes.len()))?;
                buffer.bytes.extend_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Reads the whole rest.
    pub(crate) fn read_all(&mut self, input: Input) -> Result<Vec<u8>, Unwind> {
        self.pay(self.unread(input).len())?;
        let rest = self.unread(input).to_vec();
        self.skip(input, rest.len());
        Ok(rest)
    }

    /// Reads one line, without its line break, and returns true if it had one. None at the end.
    pub(crate) fn read_line(&mut self, input: Input) -> Result<Option<(Vec<u8>, bool)>, Unwind> {
        let rest = self.unread(input);
        if rest.is_empty() {
            return Ok(None);
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(rest.len());
        self.pay(length)?;
        let line = self.unread(input).get(..length).unwrap_or_default().to_vec();
        self.skip(input, length + usize::from(end.is_some()));
        Ok(Some((line, end.is_some())))
    }

    /// Returns the whole rest of the input. None without a stream.
    pub(super) fn standard_input(&mut self, input: Input) -> Result<Option<Vec<u8>>, Unwind> {
        match input {
            Input::Nothing => Ok(None),
            Input::Buffer(_) => {
                self.pay(self.unread(input).len())?;
                Ok(Some(self.unread(input).to_vec()))
            }
        }
    }

    fn unread(&self, input: Input) -> &[u8] {
        match input {
            Input::Nothing => &[],
            Input::Buffer(number) => {
                let buffer = self.buffers.open.get(&number);
                buffer.and_then(|buffer| buffer.bytes.get(buffer.at..)).unwrap_or_default()
            }
        }
    }

    fn skip(&mut self, input: Input, bytes: usize) {
        if let Input::Buffer(number) = input
            && let Some(buffer) = self.buffers.open.get_mut(&number)
        {
            buffer.at += bytes;
        }
    }

    pub(super) fn close(&mut self, input: Input) {
        if let Input::Buffer(number) = input {
            self.buffers.close(number);
        }
    }
}
