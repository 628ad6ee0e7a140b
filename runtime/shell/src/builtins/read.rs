//! `read`

use super::{call::Call, environment::is_name};
use crate::interpreter::{Unwind, expand::is_blank};

/// A character of a line, and true if a backslash quotes it.
type Read = (char, bool);

/// Bytes of a line's character in memory.
const PLACE: usize = size_of::<Read>();

/// The meaning of a backslash in a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Backslash {
    /// It quotes the next character, or joins the next line.
    Quotes,
    /// It is a character like others (`-r`).
    Plain,
}

/// Runs `read [-r] NAME...` on one line. The last name takes the rest. Without `-r`, a backslash quotes the next
/// character, and joins a line to the next one.
pub(super) fn read(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let Some(parsed) = call.options("r", "")? else { return Ok(2) };
    if let Some(wrong) = parsed.operands.iter().find(|name| !is_name(name)) {
        return call.fail(2, &format!("{wrong}: not a valid identifier"));
    }
    let (line, ended) = line(call, if parsed.has('r') { Backslash::Plain } else { Backslash::Quotes })?;
    let Some((last, first)) = parsed.operands.split_last() else {
        call.shell.scope.set("REPLY", text(&line));
        return Ok(u8::from(!ended));
    };
    let separators = call.shell.scope.separators().to_owned();
    call.shell.pay(line.len().saturating_mul(separators.len().saturating_add(1)))?;
    let mut rest = Rest { line: &line, separators: &separators };
    rest.skip_blanks();
    for name in first {
        let value = rest.field();
        call.shell.scope.set(name, text(value));
    }
    let value = rest.last();
    call.shell.scope.set(last, text(value));
    // A last line without a line break is read, and counts as the end.
    Ok(u8::from(!ended))
}

/// Reads a line, with those that backslashes join to it, and returns true if it has a line break.
fn line(call: &mut Call<'_>, backslash: Backslash) -> Result<(Vec<Read>, bool), Unwind> {
    let mut line = Vec::new();
    loop {
        let Some((bytes, ended)) = call.shell.read_line(call.streams.stdin)? else {
            return Ok((line, false));
        };
        call.shell.check(line.len().saturating_add(bytes.len()))?;
        call.shell.pay(bytes.len().saturating_mul(PLACE))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut characters = text.chars().filter(|character| *character != '\0');
        let mut joined = false;
        while let Some(character) = characters.next() {
            match character {
                '\\' if backslash == Backslash::Quotes => match characters.next() {
                    Some(character) => line.push((character, true)),
                    None => joined = true,
                },
                character => line.push((character, false)),
            }
        }
        if !joined {
            return Ok((line, ended));
        }
    }
}

fn text(line: &[Read]) -> String {
    line.iter().map(|(character, _)| character).collect()
}

/// The rest of a line to split.
#[derive(Clone, Copy)]
struct Rest<'l> {
    line: &'l [Read],
    separators: &'l str,
}

impl<'l> Rest<'l> {
    fn separates(&self, (character, quoted): Read) -> bool {
        !quoted && self.separators.contains(character)
    }

    fn blanks(&self, read: Read) -> bool {
        self.separates(read) && is_blank(read.0)
    }

    fn skip_blanks(&mut self) {
        while let Some((_, rest)) = self.line.split_first().filter(|(first, _)| self.blanks(**first)) {
            self.line = rest;
        }
    }

    /// Takes one field, with its separator: blanks, with or without another separator among them.
    fn field(&mut self) -> &'l [Read] {
        let end = self.line.iter().position(|read| self.separates(*read)).unwrap_or(self.line.len());
        let (field, behind) = self.line.split_at(end);
        self.line = behind;
        self.skip_blanks();
        if let Some((_, rest)) = self.line.split_first().filter(|(first, _)| self.separates(**first)) {
            self.line = rest;
            self.skip_blanks();
        }
        field
    }

    /// Returns the field of the last name. It lacks blanks at its end, and a separator after an only field.
    fn last(mut self) -> &'l [Read] {
        let whole = self;
        let field = self.field();
        if self.line.is_empty() {
            return field;
        }
        let end = whole.line.iter().rposition(|read| !whole.blanks(*read)).map_or(0, |last| last + 1);
        whole.line.get(..end).unwrap_or_default()
    }
}
