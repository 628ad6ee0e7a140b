//! The parser of scripts. It is written by hand: existing parsers for this language are unmaintained, or under an
//! unsuitable licence, or bring caches and threads along (`docs/decisions/0046-exec-speaks-a-shells-language.md`).

mod commands;
mod words;

use crate::syntax::List;

/// A syntax error of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxError {
    /// A character or word is out of place.
    #[error("syntax error: unexpected {0}")]
    Unexpected(String),
    /// A construct is not closed.
    #[error("syntax error: {0} is not closed")]
    Open(&'static str),
    /// A shell feature that this language lacks.
    #[error("syntax error: {0} are not part of what `exec` understands")]
    Unknown(&'static str),
    /// Commands are nested too deep.
    #[error("syntax error: commands are nested more than {0} deep")]
    Depth(u32),
}

/// Parses a whole script, with commands nested at most `depth` deep.
pub(crate) fn parse(text: &str, depth: u32) -> Result<List, SyntaxError> {
    let mut parser = Parser { text, at: 0, most: depth, left: depth };
    let list = parser.list(Until::End)?;
    match parser.peek() {
        None => Ok(list),
        Some(_) => Err(parser.unexpected()),
    }
}

/// Parses a text as the inside of double quotes, as an arithmetic expression is.
fn quoted(text: &str, most: u32, left: u32) -> Result<crate::syntax::Word, SyntaxError> {
    let mut parser = Parser { text, at: 0, most, left };
    let mut word = Vec::new();
    parser.inside_quotes(&mut word, None)?;
    Ok(word)
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of the text.
    End,
    /// `)`, which closes the named construct.
    Parenthesis(&'static str),
    /// One of these words in the place of a command, which close the named construct.
    Words(&'static [&'static str], &'static str),
}

/// Words that are no commands in the place of a command.
const RESERVED: [&str; 12] =
    ["if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "{", "}"];

/// Reserved words of POSIX that this language lacks.
const UNKNOWN: [(&str, &str); 5] = [
    ("case", "`case` commands"),
    ("select", "`select` commands"),
    ("function", "functions"),
    ("[[", "`[[` commands (`[` is there)"),
    ("coproc", "`coproc` commands"),
];

struct Parser<'t> {
    text: &'t str,
    at: usize,
    most: u32,
    left: u32,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes a text if it comes next.
    fn take(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Skips blanks, joined lines, and a comment.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\r') => self.at += 1,
                Some('\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some('#') => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ => return,
            }
        }
    }

    fn skip_lines(&mut self) {
        loop {
            self.skip_blanks();
            if !self.take("\n") {
                return;
            }
        }
    }

    /// Returns the next word of plain characters, without taking it.
    fn plain(&self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || is_operator(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Takes a reserved word.
    fn expect(&mut self, word: &'static str, opened: &'static str) -> Result<(), SyntaxError> {
        self.skip_lines();
        match self.plain() == word {
            true => {
                self.at += word.len();
                Ok(())
            }
            false if self.peek().is_none() => Err(SyntaxError::Open(opened)),
            false => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> SyntaxError {
        let shown = match (self.plain(), self.peek()) {
            (_, None) => "end of the text".to_owned(),
            (_, Some('\n')) => "end of the line".to_owned(),
            ("", Some(operator)) => {
                let rest = self.rest();
                let twice = rest.chars().take_while(|next| *next == operator).take(2).count();
                format!("{:?}", operator.to_string().repeat(twice))
            }
            (plain, Some(_)) => format!("{:?}", plain.chars().take(64).collect::<String>()),
        };
        SyntaxError::Unexpected(shown)
    }

    /// Parses one level deeper.
    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, SyntaxError>,
    ) -> Result<T, SyntaxError> {
        self.left = self.left.checked_sub(1).ok_or(SyntaxError::Depth(self.most))?;
        let result = read(self);
        self.left += 1;
        result
    }
}

/// Returns true for a character that ends an unquoted word.
fn is_operator(character: char) -> bool {
    matches!(character, '|' | '&' | ';' | '<' | '>' | '(' | ')')
}

/// Returns the length in bytes of the parameter name at the beginning of a text.
pub(crate) fn name_length(text: &str) -> usize {
    match text.bytes().next() {
        Some(first) if first.is_ascii_alphabetic() || first == b'_' => {
            text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
