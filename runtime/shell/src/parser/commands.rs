//! Lists, pipelines, compound commands and redirections.

use super::{Parser, RESERVED, SyntaxError, UNKNOWN, Until, is_operator, name_length};
use crate::syntax::{
    AndOr, Append, Body, Command, Connector, Ends, Kind, List, Piece, Pipeline, Quoting, Redirection,
    Streams, Word,
};

impl Parser<'_> {
    /// Parses commands up to an end, which it does not take.
    pub(super) fn list(&mut self, until: Until) -> Result<List, SyntaxError> {
        self.deeper(|parser| {
            let mut items = Vec::new();
            loop {
                parser.skip_lines();
                if parser.is_at(until) {
                    return Ok(List { items });
                }
                parser.has_more(until)?;
                items.push(parser.and_or()?);
                parser.skip_blanks();
                match parser.peek() {
                    Some(';') if !parser.rest().starts_with(";;") => parser.at += 1,
                    Some('\n') => {}
                    Some('&') if !parser.rest().starts_with("&&") => {
                        return Err(SyntaxError::Unknown("commands in the background"));
                    }
                    _ if parser.is_at(until) => {}
                    _ => {
                        parser.has_more(until)?;
                        return Err(parser.unexpected());
                    }
                }
            }
        })
    }

    fn is_at(&self, until: Until) -> bool {
        match until {
            Until::End => self.peek().is_none(),
            Until::Parenthesis(_) => self.peek() == Some(')'),
            Until::Words(words, _) => words.contains(&self.plain()),
        }
    }

    /// Refuses the end of the text within an open list.
    fn has_more(&self, until: Until) -> Result<(), SyntaxError> {
        match (until, self.peek()) {
            (Until::Parenthesis(opened) | Until::Words(_, opened), None) => Err(SyntaxError::Open(opened)),
            _ => Ok(()),
        }
    }

    fn and_or(&mut self) -> Result<AndOr, SyntaxError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let connector = match () {
                () if self.take("&&") => Connector::And,
                () if self.take("||") => Connector::Or,
                () => return Ok(AndOr { first, rest }),
            };
            self.skip_lines();
            rest.push((connector, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Result<Pipeline, SyntaxError> {
        let mut negated = false;
        self.skip_blanks();
        while self.plain() == "!" {
            self.at += 1;
            negated = !negated;
            self.skip_blanks();
        }
        let mut stages = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.rest().starts_with("||") || !self.take("|") {
                return Ok(Pipeline { negated, stages });
            }
            let both = self.take("&");
            if let Some(last) = stages.last_mut().filter(|_| both) {
                last.redirections.push(Redirection::Join { from: Streams::Error, to: Streams::Output });
            }
            self.skip_lines();
            stages.push(self.command()?);
        }
    }

    fn command(&mut self) -> Result<Command, SyntaxError> {
        self.skip_blanks();
        let body = match self.plain() {
            "" if self.rest().starts_with("((") => {
                return Err(SyntaxError::Unknown("`((` commands"));
            }
            "" if self.take("(") => {
                let list = self.list(Until::Parenthesis("a parenthesis"))?;
                self.take(")");
                match list.items.is_empty() {
                    true => return Err(SyntaxError::Unexpected("\")\"".to_owned())),
                    false => Body::Subshell(list),
                }
            }
            "{" => {
                self.at += 1;
                let list = self.commands(&["}"], "a `{`")?;
                self.expect("}", "a `{`")?;
                Body::Group(list)
            }
            "if" => self.branches()?,
            "while" => self.repeated("while", Ends::OnFailure)?,
            "until" => self.repeated("until", Ends::OnSuccess)?,
            "for" => self.for_each()?,
            word if RESERVED.contains(&word) => return Err(self.unexpected()),
            word => match UNKNOWN.iter().find(|(unknown, _)| *unknown == word) {
                Some((_, what)) => return Err(SyntaxError::Unknown(what)),
                None => return self.simple(),
            },
        };
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            if !self.redirection(&mut redirections)? {
                return Ok(Command { body, redirections });
            }
        }
    }

    /// Parses a list that has at least one command.
    fn commands(&mut self, ends: &'static [&'static str], opened: &'static str) -> Result<List, SyntaxError> {
        let list = self.list(Until::Words(ends, opened))?;
        match list.items.is_empty() {
            true => Err(self.unexpected()),
            false => Ok(list),
        }
    }

    fn branches(&mut self) -> Result<Body, SyntaxError> {
        const OPENED: &str = "an `if`";
        self.at += "if".len();
        let mut branches = Vec::new();
        loop {
            let condition = self.commands(&["then"], OPENED)?;
            self.expect("then", OPENED)?;
            branches.push((condition, self.commands(&["elif", "else", "fi"], OPENED)?));
            match self.plain() {
                "elif" => self.at += "elif".len(),
                _ => break,
            }
        }
        let mut otherwise = List::default();
        if self.plain() == "else" {
            self.at += "else".len();
            otherwise = self.commands(&["fi"], OPENED)?;
        }
        self.expect("fi", OPENED)?;
        Ok(Body::If { branches, otherwise })
    }

    fn repeated(&mut self, word: &'static str, ends_when: Ends) -> Result<Body, SyntaxError> {
        const OPENED: &str = "a loop";
        self.at += word.len();
        let condition = self.commands(&["do"], OPENED)?;
        let body = self.loop_body()?;
        Ok(Body::Loop { ends_when, condition, body })
    }

    fn loop_body(&mut self) -> Result<List, SyntaxError> {
        const OPENED: &str = "a loop";
        self.expect("do", OPENED)?;
        let body = self.commands(&["done"], OPENED)?;
        self.expect("done", OPENED)?;
        Ok(body)
    }

    fn for_each(&mut self) -> Result<Body, SyntaxError> {
        self.at += "for".len();
        self.skip_blanks();
        let name = self.plain();
        if name.is_empty() || name_length(name) != name.len() {
            return Err(self.unexpected());
        }
        self.at += name.len();
        self.skip_lines();
        let mut words = Vec::new();
        if self.plain() != "in" {
            // Without `in`, the loop takes each argument of the script.
            let kind = Kind::Parameter { name: "@".to_owned(), change: None };
            words.push(vec![Piece { kind, quoting: Quoting::Quoted }]);
        } else {
            self.at += "in".len();
            loop {
                self.skip_blanks();
                match self.word()? {
                    Some(word) => words.push(word),
                    None => break,
                }
            }
        }
        self.take(";");
        Ok(Body::For { name: name.to_owned(), words, body: self.loop_body()? })
    }

    fn simple(&mut self) -> Result<Command, SyntaxError> {
        let (mut assignments, mut words, mut redirections) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.skip_blanks();
            if self.redirection(&mut redirections)? {
                continue;
            }
            let length = name_length(self.rest());
            let is_assignment = words.is_empty() && length > 0;
            if is_assignment && self.rest().get(length..).is_some_and(|rest| rest.starts_with('=')) {
                let name = self.rest().get(..length).unwrap_or_default().to_owned();
                self.at += length + 1;
                assignments.push((name, self.word()?.unwrap_or_default()));
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => break,
            }
            if words.len() == 1 && self.rest().starts_with('(') {
                return Err(SyntaxError::Unknown("functions"));
            }
        }
        if words.is_empty() && assignments.is_empty() && redirections.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Command { body: Body::Simple { assignments, words }, redirections })
    }

    /// Takes a redirection, if one comes next.
    fn redirection(&mut self, taken: &mut Vec<Redirection>) -> Result<bool, SyntaxError> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = self.rest().split_at(digits);
        let both = number.is_empty() && behind.starts_with("&>");
        if !behind.starts_with(['<', '>']) && !both {
            return Ok(false);
        }
        self.at += digits + usize::from(both);
        if behind.starts_with("<<") {
            return Err(SyntaxError::Unknown("here-documents"));
        }
        if self.take("<") {
            if !matches!(number, "" | "0") || self.rest().starts_with(['&', '>', '(']) {
                return Err(SyntaxError::Unknown("such redirections"));
            }
            taken.push(Redirection::Read(self.file()?));
            return Ok(true);
        }
        let streams = match number {
            "" if both => Streams::Both,
            "" | "1" => Streams::Output,
            "2" => Streams::Error,
            _ => return Err(SyntaxError::Unknown("redirections of other streams than 0, 1 and 2")),
        };
        self.at += 1;
        let append = if self.take(">") { Append::Yes } else { Append::No };
        if append == Append::No && !both && self.take("&") {
            let to = match self.plain() {
                "1" => Streams::Output,
                "2" => Streams::Error,
                _ => return Err(SyntaxError::Unknown("such redirections")),
            };
            self.at += 1;
            taken.push(Redirection::Join { from: streams, to });
            return Ok(true);
        }
        self.take("|");
        taken.push(Redirection::Write { streams, file: self.file()?, append });
        Ok(true)
    }

    fn file(&mut self) -> Result<Word, SyntaxError> {
        self.skip_blanks();
        match self.peek() {
            Some(next) if !is_operator(next) => self.word()?.ok_or_else(|| self.unexpected()),
            _ => Err(self.unexpected()),
        }
    }
}
