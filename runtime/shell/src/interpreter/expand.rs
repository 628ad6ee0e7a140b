//! From words to arguments: parameters, substitutions, splitting at blanks, patterns.

use super::{Halt, Output, Shell, Step, Streams, arithmetic};
use crate::{
    pattern,
    syntax::{Change, End, Kind, List, Piece, Unset, Word},
};

/// What blanks a value that is not quoted is split at.
const BLANKS: [char; 3] = [' ', '\t', '\n'];

/// An argument in the making: as text, and as a pattern in which quoted characters stand for themselves.
#[derive(Debug, Default)]
struct Field {
    text: String,
    pattern: String,
    globs: bool,
}

impl Field {
    fn push(&mut self, text: &str, quoted: bool) {
        self.text.push_str(text);
        for character in text.chars() {
            let special = matches!(character, '*' | '?' | '[' | ']' | '\\');
            if special && quoted {
                self.pattern.push('\\');
            }
            self.globs |= special && !quoted && character != ']' && character != '\\';
            self.pattern.push(character);
        }
    }
}

#[derive(Debug, Default)]
struct Fields {
    done: Vec<Field>,
    open: Option<Field>,
}

impl Fields {
    fn push(&mut self, text: &str, quoted: bool) {
        self.open.get_or_insert_default().push(text, quoted);
    }

    /// A value that is not quoted: blanks end an argument.
    fn split(&mut self, value: &str) {
        for (index, part) in value.split(BLANKS).enumerate() {
            if index > 0 {
                self.end();
            }
            if !part.is_empty() {
                self.push(part, false);
            }
        }
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }
}

impl Shell {
    /// The arguments that words become.
    pub(crate) async fn fields(&mut self, words: &[Word], streams: Streams) -> Result<Vec<String>, Halt> {
        let mut arguments = Vec::new();
        for word in words {
            let mut fields = Fields::default();
            for piece in word {
                self.expand(piece, &mut fields, streams).await?;
            }
            fields.end();
            for field in fields.done {
                // A text, its pattern and what vectors take.
                self.pay(field.text.len().saturating_mul(2).saturating_add(64))?;
                let paths = match field.globs && !self.scope.no_globs {
                    true => self.glob(&field.pattern).await?,
                    false => Vec::new(),
                };
                if paths.is_empty() {
                    arguments.push(field.text);
                }
                arguments.extend(paths);
            }
        }
        Ok(arguments)
    }

    /// The one text that a word becomes where it is not split.
    pub(crate) fn joined<'a>(&'a mut self, word: &'a Word, streams: Streams) -> Step<'a, String> {
        Box::pin(async move { Ok(self.unsplit(word, streams).await?.text) })
    }

    async fn unsplit(&mut self, word: &Word, streams: Streams) -> Result<Field, Halt> {
        let mut field = Field::default();
        for piece in word {
            let value = self.value(piece, streams).await?;
            self.pay(value.len())?;
            self.meter.check(field.text.len().saturating_add(value.len()))?;
            field.push(&value, piece.quoted);
        }
        Ok(field)
    }

    async fn expand(&mut self, piece: &Piece, fields: &mut Fields, streams: Streams) -> Result<(), Halt> {
        let is_all = matches!(&piece.kind, Kind::Parameter { name, change: None } if name == "@");
        if is_all && piece.quoted {
            let arguments = self.scope.arguments.get(1..).unwrap_or_default().to_vec();
            for (index, argument) in arguments.iter().enumerate() {
                self.pay(argument.len().saturating_add(64))?;
                if index > 0 {
                    fields.end();
                }
                fields.push(argument, true);
            }
            return Ok(());
        }
        let value = self.value(piece, streams).await?;
        self.pay(value.len())?;
        let length = fields.open.as_ref().map_or(0, |field| field.text.len());
        self.meter.check(length.saturating_add(value.len()))?;
        match (&piece.kind, piece.quoted) {
            (Kind::Text(_), quoted) => fields.push(&value, quoted),
            (_, true) => fields.push(&value, true),
            (_, false) => fields.split(&value),
        }
        Ok(())
    }

    /// The value of a part of a word.
    async fn value(&mut self, piece: &Piece, streams: Streams) -> Result<String, Halt> {
        match &piece.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Parameter { name, change } => self.parameter(name, change.as_ref(), streams).await,
            Kind::Output(list) => self.output(list, streams).await,
            Kind::Arithmetic(word) => {
                let text = self.joined(word, streams).await?;
                self.pay(text.len())?;
                let variable = |name: &str| self.scope.get(name).unwrap_or_default().to_owned();
                match arithmetic::evaluate(&text, &variable) {
                    Ok(number) => Ok(number.to_string()),
                    Err(error) => self.refuse(&format!("arithmetic: {error}"), streams),
                }
            }
        }
    }

    /// What a list writes, without the ends of lines behind it.
    async fn output(&mut self, list: &List, streams: Streams) -> Result<String, Halt> {
        let buffer = self.buffers.open(Vec::new());
        let ended = self.in_subshell(list, Streams { stdout: Output::Buffer(buffer), ..streams }).await;
        let bytes = self.buffers.close(buffer);
        ended?;
        self.substituted = Some(self.status);
        let mut text = String::from_utf8_lossy(&bytes).replace('\0', "");
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    async fn parameter(
        &mut self,
        name: &str,
        change: Option<&Change>,
        streams: Streams,
    ) -> Result<String, Halt> {
        let value = self.lookup(name);
        match change {
            None | Some(Change::Length | Change::Trim { .. })
                if value.is_none() && self.scope.refuse_unset =>
            {
                self.refuse(&format!("{name}: unbound variable"), streams)
            }
            None => Ok(value.unwrap_or_default()),
            Some(Change::Length) => Ok(value.unwrap_or_default().chars().count().to_string()),
            Some(Change::Trim { end, longest, pattern }) => {
                let value = value.unwrap_or_default();
                let pattern = self.pattern(pattern, streams).await?;
                // Each place where the value could be cut is one try.
                let tries = value.len().saturating_add(1);
                self.pay(tries.saturating_mul(tries).saturating_mul(pattern.len().saturating_add(1)))?;
                Ok(trimmed(&value, &pattern, *end, *longest).to_owned())
            }
            Some(Change::Unset { how, empty_too, word }) => {
                let value = value.filter(|value| !(*empty_too && value.is_empty()));
                match (how, value) {
                    (Unset::Alternative, None) => Ok(String::new()),
                    (Unset::Alternative, Some(_)) | (Unset::Default, None) => {
                        self.joined(word, streams).await
                    }
                    (Unset::Assign, None) => {
                        let text = self.joined(word, streams).await?;
                        self.scope.set(name, text.clone());
                        Ok(text)
                    }
                    (Unset::Error, None) => {
                        let text = self.joined(word, streams).await?;
                        let text = if text.is_empty() { "parameter not set" } else { &text };
                        self.refuse(&format!("{name}: {text}"), streams)
                    }
                    (_, Some(value)) => Ok(value),
                }
            }
        }
    }

    fn pattern<'a>(&'a mut self, word: &'a Word, streams: Streams) -> Step<'a, String> {
        Box::pin(async move { Ok(self.unsplit(word, streams).await?.pattern) })
    }

    /// Ends the script with an error, as a shell does that is not interactive.
    fn refuse(&mut self, text: &str, streams: Streams) -> Result<String, Halt> {
        self.write(streams.stderr, format!("{text}\n").as_bytes())?;
        Err(Halt::Exit(1))
    }

    fn lookup(&self, name: &str) -> Option<String> {
        let arguments = &self.scope.arguments;
        match name {
            "?" => Some(self.status.to_string()),
            "#" => Some(arguments.len().saturating_sub(1).to_string()),
            "@" | "*" => Some(arguments.get(1..).unwrap_or_default().join(" ")),
            // There is one process, and nothing runs beside it.
            "$" => Some("1".to_owned()),
            "!" => None,
            "-" => Some(String::new()),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => {
                arguments.get(name.parse::<usize>().ok()?).cloned()
            }
            _ => self.scope.get(name).map(str::to_owned),
        }
    }
}

/// A value without what matches at one end.
fn trimmed<'v>(value: &'v str, pattern: &str, end: End, longest: bool) -> &'v str {
    let mut places: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    // From the shortest piece to the longest.
    if end == End::Back {
        places.reverse();
    }
    if longest {
        places.reverse();
    }
    for at in places {
        let (front, back) = value.split_at(at);
        let (piece, rest) = if end == End::Front { (front, back) } else { (back, front) };
        if pattern::matches(pattern, piece) {
            return rest;
        }
    }
    value
}
