//! Reads a script's text. By hand: the parsers that there are for this language are unmaintained, or under a licence
//! that a work like this cannot take, or bring caches and threads along
//! (`docs/decisions/0046-exec-speaks-a-shells-language.md`).

mod commands;
mod words;

use crate::syntax::List;

/// Why a text is no script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxError {
    /// Something stands where it cannot.
    #[error("syntax error: unexpected {0}")]
    Unexpected(String),
    /// Something was begun and not ended.
    #[error("syntax error: {0} is not closed")]
    Open(&'static str),
    /// A shell knows it, and this one does not.
    #[error("syntax error: {0} are not part of what `exec` understands")]
    Unknown(&'static str),
    /// Commands within commands within commands.
    #[error("syntax error: commands are nested more than {0} deep")]
    Depth(u32),
}

/// Reads a whole script, whose commands may be nested so deep.
pub(crate) fn parse(text: &str, depth: u32) -> Result<List, SyntaxError> {
    let mut parser = Parser { text, at: 0, most: depth, left: depth };
    let list = parser.list(Until::End)?;
    match parser.peek() {
        None => Ok(list),
        Some(_) => Err(parser.unexpected()),
    }
}

/// Reads one text as the inside of double quotes: an arithmetic expression is one.
fn quoted(text: &str, most: u32, left: u32) -> Result<crate::syntax::Word, SyntaxError> {
    let mut parser = Parser { text, at: 0, most, left };
    let mut word = Vec::new();
    parser.inside_quotes(&mut word, None)?;
    Ok(word)
}

/// What a list of commands ends at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of the text.
    End,
    /// `)`, which ends this.
    Parenthesis(&'static str),
    /// One of these words where a command could stand, which end this.
    Words(&'static [&'static str], &'static str),
}

/// Words that are no commands where a command stands.
const RESERVED: [&str; 12] =
    ["if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "{", "}"];

/// Words of the language that are not here.
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

    /// Blanks, lines that go on, and a comment.
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

    /// The word of plain characters that comes next, without taking it.
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

    /// Reads something one level deeper.
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

/// Whether a character ends a word that is not quoted.
fn is_operator(character: char) -> bool {
    matches!(character, '|' | '&' | ';' | '<' | '>' | '(' | ')')
}

/// How many bytes of a text are a parameter's name.
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
