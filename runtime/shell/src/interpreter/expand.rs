//! Word expansion: parameters, substitutions, field splitting, patterns.

use super::{Output, Shell, Step, Streams, Unwind, arithmetic};
use crate::{
    Stopped,
    limits::Meter,
    pattern::Pattern,
    syntax::{Change, End, Kind, List, MatchLength, Piece, Quoting, Unset, Word},
};

/// Bytes of an unfinished argument beside its own: two texts, and a place in a vector that grows.
const FIELD: usize = 128;

/// An unfinished argument: as text, and as a pattern with its quoted characters escaped.
#[derive(Debug, Default)]
struct Field {
    text: String,
    pattern: String,
    globs: bool,
}

impl Field {
    fn push(&mut self, text: &str, quoting: Quoting) {
        let quoted = quoting == Quoting::Quoted;
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
    fn push(&mut self, text: &str, quoting: Quoting) {
        self.open.get_or_insert_default().push(text, quoting);
    }

    /// Splits an unquoted value at separators. A run of blanks counts as one separator, and joins an adjacent separator
    /// of another kind.
    fn split(&mut self, value: &str, separators: &str, meter: &mut Meter) -> Result<(), Stopped> {
        // Each character is compared with each separator.
        meter.bytes(value.len().saturating_mul(separators.len().max(1)))?;
        let mut rest = value;
        let mut behind_blank = false;
        while let Some(at) = rest.find(|character| separators.contains(character)) {
            let (part, behind) = rest.split_at(at);
            if !part.is_empty() {
                self.push(part, Quoting::Bare);
                behind_blank = false;
            }
            let mut characters = behind.chars();
            let is_blank = characters.next().is_some_and(is_blank);
            rest = characters.as_str();
            if is_blank {
                behind_blank |= self.open.is_some();
                self.end(meter)?;
            } else if !std::mem::take(&mut behind_blank) {
                self.open.get_or_insert_default();
                self.end(meter)?;
            }
        }
        if !rest.is_empty() {
            self.push(rest, Quoting::Bare);
        }
        Ok(())
    }

    /// Ends an open argument, and pays for it.
    fn end(&mut self, meter: &mut Meter) -> Result<(), Stopped> {
        if let Some(field) = self.open.take() {
            meter.bytes(field.text.len().saturating_mul(2).saturating_add(FIELD))?;
            meter.check_arguments(self.done.len() + 1)?;
            self.done.push(field);
        }
        Ok(())
    }
}

impl Shell {
    /// Expands words to arguments.
    pub(crate) async fn fields(&mut self, words: &[Word], streams: Streams) -> Result<Vec<String>, Unwind> {
        let mut arguments = Vec::new();
        for word in words {
            let mut fields = Fields::default();
            for piece in word {
                self.expand(piece, &mut fields, streams).await?;
            }
            fields.end(&mut self.meter)?;
            for field in fields.done {
                let paths = match field.globs && !self.scope.no_globs {
                    true => self.glob(&field.pattern).await?,
                    false => Vec::new(),
                };
                if paths.is_empty() {
                    arguments.push(field.text);
                }
                arguments.extend(paths);
                self.meter.check_arguments(arguments.len())?;
            }
        }
        Ok(arguments)
    }

    /// Expands a word to one text, without field splitting.
    pub(crate) fn joined<'a>(&'a mut self, word: &'a Word, streams: Streams) -> Step<'a, String> {
        Box::pin(async move { Ok(self.unsplit(word, streams).await?.text) })
    }

    async fn unsplit(&mut self, word: &Word, streams: Streams) -> Result<Field, Unwind> {
        let mut field = Field::default();
        for piece in word {
            let value = self.value(piece, streams).await?;
            self.pay(value.len())?;
            self.meter.check(field.text.len().saturating_add(value.len()))?;
            field.push(&value, piece.quoting);
        }
        Ok(field)
    }

    async fn expand(&mut self, piece: &Piece, fields: &mut Fields, streams: Streams) -> Result<(), Unwind> {
        let is_all = matches!(
            &piece.kind,
            Kind::Parameter { name, change: None } if name == "@" || name == "*" && piece.quoting == Quoting::Bare
        );
        if is_all {
            let Self { scope, meter, .. } = self;
            for (index, argument) in scope.arguments.iter().skip(1).enumerate() {
                meter.bytes(argument.len().saturating_mul(2))?;
                if index > 0 {
                    fields.end(meter)?;
                }
                match piece.quoting {
                    Quoting::Quoted => fields.push(argument, Quoting::Quoted),
                    Quoting::Bare => fields.split(argument, scope.separators(), meter)?,
                }
            }
            return Ok(());
        }
        let value = self.value(piece, streams).await?;
        self.pay(value.len())?;
        let length = fields.open.as_ref().map_or(0, |field| field.text.len());
        self.meter.check(length.saturating_add(value.len()))?;
        match (&piece.kind, piece.quoting) {
            (Kind::Text(_), quoting) | (_, quoting @ Quoting::Quoted) => fields.push(&value, quoting),
            (_, Quoting::Bare) => fields.split(&value, self.scope.separators(), &mut self.meter)?,
        }
        Ok(())
    }

    /// Returns the value of a part of a word.
    async fn value(&mut self, piece: &Piece, streams: Streams) -> Result<String, Unwind> {
        match &piece.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Parameter { name, change } => self.parameter(name, change.as_ref(), streams).await,
            Kind::Output(list) => self.output(list, streams).await,
            Kind::Arithmetic(word) => {
                let text = self.joined(word, streams).await?;
                // Each name in the expression is looked up.
                self.pay(text.len().saturating_mul(16))?;
                let variable = |name: &str| self.scope.get(name).unwrap_or_default();
                match arithmetic::evaluate(&text, &variable) {
                    Ok(number) => Ok(number.to_string()),
                    Err(error) => self.refuse(&format!("arithmetic: {error}"), streams),
                }
            }
        }
    }

    /// Runs a list, and returns its output without the line breaks at its end.
    async fn output(&mut self, list: &List, streams: Streams) -> Result<String, Unwind> {
        if let Some(file) = list.only_reads() {
            return self.content(file, streams).await;
        }
        let buffer = self.buffers.open(Vec::new());
        let ended = self.in_subshell(list, Streams { stdout: Output::Buffer(buffer), ..streams }).await;
        let bytes = self.buffers.close(buffer);
        ended?;
        self.substituted = Some(self.status);
        self.substitute(&bytes)
    }

    /// Returns a file's content, for `$(< FILE)`.
    async fn content(&mut self, file: &Word, streams: Streams) -> Result<String, Unwind> {
        let path = self.joined(file, streams).await?;
        let bytes = match path.as_str() {
            "/dev/null" => Ok(Vec::new()),
            path => self.read_file(path).await?,
        };
        self.status = u8::from(bytes.is_err());
        self.substituted = Some(self.status);
        match bytes {
            Ok(bytes) => self.substitute(&bytes),
            Err(error) => {
                self.write(streams.stderr, format!("{path}: {error}\n").as_bytes())?;
                Ok(String::new())
            }
        }
    }

    /// Converts bytes to text, without the line breaks at its end.
    fn substitute(&mut self, bytes: &[u8]) -> Result<String, Unwind> {
        self.pay(bytes.len())?;
        let mut text = String::from_utf8_lossy(bytes).replace('\0', "");
        self.meter.check(text.len())?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }

    async fn parameter(
        &mut self,
        name: &str,
        change: Option<&Change>,
        streams: Streams,
    ) -> Result<String, Unwind> {
        let value = self.lookup(name)?;
        match change {
            None | Some(Change::Length | Change::Trim { .. })
                if value.is_none() && self.scope.refuse_unset =>
            {
                self.refuse(&format!("{name}: unbound variable"), streams)
            }
            None => Ok(value.unwrap_or_default()),
            Some(Change::Length) => Ok(value.unwrap_or_default().chars().count().to_string()),
            Some(Change::Trim { end, length, pattern }) => {
                let value = value.unwrap_or_default();
                let pattern = self.pattern(pattern, streams).await?;
                self.pay(pattern.len().saturating_mul(Pattern::PRICE))?;
                Ok(trimmed(&value, &pattern, *end, *length, &mut self.meter)?.to_owned())
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
    fn refuse(&mut self, text: &str, streams: Streams) -> Result<String, Unwind> {
        self.write(streams.stderr, format!("{text}\n").as_bytes())?;
        Err(Unwind::Exit(1))
    }

    /// Returns a parameter's value, and pays for it before the copy.
    fn lookup(&mut self, name: &str) -> Result<Option<String>, Unwind> {
        let Self { scope, meter, .. } = self;
        let arguments = &scope.arguments;
        let value = match name {
            "?" => Some(self.status.to_string()),
            "#" => Some(arguments.len().saturating_sub(1).to_string()),
            "@" | "*" => {
                let arguments = arguments.get(1..).unwrap_or_default();
                meter.bytes(
                    arguments.iter().map(|argument| argument.len() + 1).fold(0, usize::saturating_add),
                )?;
                let between = if name == "@" { " " } else { scope.separators() };
                let between: String = between.chars().take(1).collect();
                Some(arguments.join(&between))
            }
            // There is one process, and no background command.
            "$" => Some("1".to_owned()),
            "!" => None,
            "-" => Some(String::new()),
            _ if name.starts_with(|first: char| first.is_ascii_digit()) => {
                let value = name.parse::<usize>().ok().and_then(|number| arguments.get(number));
                meter.bytes(value.map_or(0, String::len))?;
                value.cloned()
            }
            _ => {
                let value = scope.get(name);
                meter.bytes(value.map_or(0, str::len))?;
                value.map(str::to_owned)
            }
        };
        Ok(value)
    }
}

/// Returns true for separators of which a run counts as one.
pub(crate) fn is_blank(separator: char) -> bool {
    matches!(separator, ' ' | '\t' | '\n')
}

/// Removes the part that matches at one end of a value.
fn trimmed<'v>(
    value: &'v str,
    pattern: &str,
    end: End,
    length: MatchLength,
    meter: &mut Meter,
) -> Result<&'v str, Stopped> {
    let pattern = Pattern::new(pattern);
    let pay = &mut |steps| meter.bytes(steps);
    Ok(match end {
        End::Front => {
            let matched = pattern.begins(value.chars(), length, pay)?.unwrap_or(0);
            let at = value.char_indices().nth(matched).map_or(value.len(), |(at, _)| at);
            value.get(at..).unwrap_or_default()
        }
        End::Back => {
            let matched = pattern.reversed().begins(value.chars().rev(), length, pay)?.unwrap_or(0);
            let at = matched.checked_sub(1).and_then(|last| value.char_indices().rev().nth(last));
            value.get(..at.map_or(value.len(), |(at, _)| at)).unwrap_or_default()
        }
    })
}
