//! Words: quotes, parameters and substitutions.

use super::{Parser, SyntaxError, Until, is_operator, name_length, parse, quoted as quoted_text};
use crate::syntax::{Change, End, Kind, MatchLength, Piece, Quoting, Unset, Word};

/// Parameters whose name is one special character.
const SPECIAL: [char; 7] = ['?', '#', '@', '*', '$', '!', '-'];

impl Parser<'_> {
    /// Parses the next word. None if another construct comes next.
    pub(super) fn word(&mut self) -> Result<Option<Word>, SyntaxError> {
        let mut word = Word::new();
        while let Some(next) = self.peek() {
            if next.is_whitespace() || is_operator(next) {
                break;
            }
            self.piece(&mut word)?;
        }
        Ok((!word.is_empty()).then_some(word))
    }

    /// Parses one character of a word, or the construct that it begins.
    fn piece(&mut self, word: &mut Word) -> Result<(), SyntaxError> {
        match self.next() {
            Some('\'') => {
                let end = self.rest().find('\'').ok_or(SyntaxError::Open("a quote"))?;
                push_text(word, self.rest().get(..end).unwrap_or_default(), Quoting::Quoted);
                self.at += end + 1;
            }
            Some('"') => {
                push_text(word, "", Quoting::Quoted);
                self.inside_quotes(word, Some('"'))?;
            }
            Some('\\') => match self.next() {
                // A joined line.
                Some('\n') => {}
                Some(escaped) => push_text(word, escaped.encode_utf8(&mut [0; 4]), Quoting::Quoted),
                None => push_text(word, "\\", Quoting::Quoted),
            },
            Some('$') if self.peek() == Some('\'') => {
                return Err(SyntaxError::Unknown("`$'...'` quotes"));
            }
            Some('$') => self.dollar(word, Quoting::Bare)?,
            Some('`') => self.backticks(word, Quoting::Bare)?,
            Some(character) => push_text(word, character.encode_utf8(&mut [0; 4]), Quoting::Bare),
            None => {}
        }
        Ok(())
    }

    /// Parses quoted text, in which only `\`, `$` and backticks are special, up to an end or the end
    /// of the text.
    pub(super) fn inside_quotes(&mut self, word: &mut Word, end: Option<char>) -> Result<(), SyntaxError> {
        loop {
            match self.next() {
                None if end.is_some() => return Err(SyntaxError::Open("a quote")),
                None => return Ok(()),
                next if next == end => return Ok(()),
                Some('\\') => match self.peek() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.at += 1;
                        push_text(word, escaped.encode_utf8(&mut [0; 4]), Quoting::Quoted);
                    }
                    Some('\n') => self.at += 1,
                    _ => push_text(word, "\\", Quoting::Quoted),
                },
                Some('$') => self.dollar(word, Quoting::Quoted)?,
                Some('`') => self.backticks(word, Quoting::Quoted)?,
                Some(character) => push_text(word, character.encode_utf8(&mut [0; 4]), Quoting::Quoted),
            }
        }
    }

    /// Parses the construct after a `$`.
    fn dollar(&mut self, word: &mut Word, quoting: Quoting) -> Result<(), SyntaxError> {
        if self.rest().starts_with("((") {
            let kind = Kind::Arithmetic(self.arithmetic()?);
            word.push(Piece { kind, quoting });
            return Ok(());
        }
        if self.take("(") {
            let list = self.list(Until::Parenthesis("a substitution"))?;
            self.take(")");
            word.push(Piece { kind: Kind::Output(list), quoting });
            return Ok(());
        }
        if self.take("{") {
            let kind = self.deeper(|parser| parser.braces(quoting))?;
            word.push(Piece { kind, quoting });
            return Ok(());
        }
        let length = match self.peek() {
            Some(digit) if digit.is_ascii_digit() => 1,
            Some(special) if SPECIAL.contains(&special) => 1,
            _ => name_length(self.rest()),
        };
        if length == 0 {
            push_text(word, "$", quoting);
            return Ok(());
        }
        let name = self.rest().get(..length).unwrap_or_default().to_owned();
        self.at += length;
        word.push(Piece { kind: Kind::Parameter { name, change: None }, quoting });
        Ok(())
    }

    /// Parses the expression of `$((...))` as a text whose parameters are expanded later.
    fn arithmetic(&mut self) -> Result<Word, SyntaxError> {
        const OPENED: &str = "an arithmetic expression";
        self.at += 2;
        let (mut open, mut length) = (0_u32, 0);
        for character in self.rest().chars() {
            match character {
                '(' => open += 1,
                ')' if open == 0 => break,
                ')' => open -= 1,
                _ => {}
            }
            length += character.len_utf8();
        }
        let text = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        if !self.take("))") {
            return Err(SyntaxError::Open(OPENED));
        }
        self.deeper(|parser| quoted_text(text, parser.most, parser.left))
    }

    /// Parses a parameter in braces, after the opening one.
    fn braces(&mut self, quoting: Quoting) -> Result<Kind, SyntaxError> {
        const OPENED: &str = "a `${`";
        let is_length = self.rest().starts_with('#') && !self.rest().starts_with("#}");
        self.at += usize::from(is_length);
        let length = match self.peek() {
            Some(digit) if digit.is_ascii_digit() => {
                self.rest().bytes().take_while(u8::is_ascii_digit).count()
            }
            Some(special) if SPECIAL.contains(&special) => 1,
            Some(_) => name_length(self.rest()),
            None => return Err(SyntaxError::Open(OPENED)),
        };
        if length == 0 {
            return Err(self.unexpected());
        }
        let name = self.rest().get(..length).unwrap_or_default().to_owned();
        self.at += length;
        if self.take("}") {
            return Ok(Kind::Parameter { name, change: is_length.then_some(Change::Length) });
        }
        if is_length {
            return Err(self.unexpected());
        }
        let change = match () {
            () if self.take("##") => self.trim(End::Front, MatchLength::Longest)?,
            () if self.take("#") => self.trim(End::Front, MatchLength::Shortest)?,
            () if self.take("%%") => self.trim(End::Back, MatchLength::Longest)?,
            () if self.take("%") => self.trim(End::Back, MatchLength::Shortest)?,
            () => {
                let empty_too = self.take(":");
                let how = match self.peek() {
                    Some('-') => Unset::Default,
                    Some('=') => Unset::Assign,
                    Some('+') => Unset::Alternative,
                    Some('?') => Unset::Error,
                    None => return Err(SyntaxError::Open(OPENED)),
                    Some(_) => return Err(SyntaxError::Unknown("such changes of parameters")),
                };
                self.at += 1;
                Change::Unset { how, empty_too, word: self.in_braces(quoting)? }
            }
        };
        Ok(Kind::Parameter { name, change: Some(change) })
    }

    fn trim(&mut self, end: End, length: MatchLength) -> Result<Change, SyntaxError> {
        Ok(Change::Trim { end, length, pattern: self.in_braces(Quoting::Bare)? })
    }

    /// Parses a word up to the closing brace, in which blanks and operators are text.
    fn in_braces(&mut self, quoting: Quoting) -> Result<Word, SyntaxError> {
        let mut word = Word::new();
        loop {
            match self.peek() {
                None => return Err(SyntaxError::Open("a `${`")),
                Some('}') => {
                    self.at += 1;
                    return Ok(word);
                }
                // Within double quotes a single quote is text.
                Some('\'') if quoting == Quoting::Quoted => {
                    self.at += 1;
                    push_text(&mut word, "'", Quoting::Quoted);
                }
                Some(_) => self.piece(&mut word)?,
            }
        }
    }

    /// Parses a substitution in backticks, after it removes the backslashes in it.
    fn backticks(&mut self, word: &mut Word, quoting: Quoting) -> Result<(), SyntaxError> {
        let mut text = String::new();
        loop {
            match self.next() {
                None => return Err(SyntaxError::Open("a backtick")),
                Some('`') => break,
                Some('\\') => match self.peek() {
                    Some(escaped @ ('$' | '`' | '\\')) => {
                        self.at += 1;
                        text.push(escaped);
                    }
                    Some('"') if quoting == Quoting::Quoted => {
                        self.at += 1;
                        text.push('"');
                    }
                    _ => text.push('\\'),
                },
                Some(character) => text.push(character),
            }
        }
        let (most, left) = (self.most, self.left);
        let list = parse(&text, left).map_err(|error| match error {
            SyntaxError::Depth(_) => SyntaxError::Depth(most),
            error => error,
        })?;
        word.push(Piece { kind: Kind::Output(list), quoting });
        Ok(())
    }
}

/// Adds text to a word, to its last piece if that is of the same kind.
fn push_text(word: &mut Word, text: &str, quoting: Quoting) {
    if let Some(Piece { kind: Kind::Text(last), quoting: same }) = word.last_mut()
        && *same == quoting
    {
        last.push_str(text);
        return;
    }
    word.push(Piece { kind: Kind::Text(text.to_owned()), quoting });
}
