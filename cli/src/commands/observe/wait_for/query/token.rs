//! The tokens of a query, each with its column.

use super::QueryError;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Number(f64),
    Truth(bool),
    /// An operator, a parenthesis or a separator.
    Sign(&'static str),
    End,
}

/// Longer signs come before their own prefixes.
const SIGNS: [&str; 14] = ["==", "=>", "!=", "<=", ">=", "&&", "||", "!", "<", ">", "(", ")", ",", "."];

impl Token {
    /// Formats the token for an error.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(text) | Self::Text(text) => format!("{text:?}"),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Splits a query into tokens, with the end as the last.
pub(super) fn tokens(query: &str) -> Result<Vec<(usize, Token)>, QueryError> {
    let mut tokens = Vec::new();
    let (mut rest, mut column) = (query, 1);
    loop {
        let trimmed = rest.trim_start();
        column += count(rest) - count(trimmed);
        rest = trimmed;
        let Some(first) = rest.chars().next() else { break };
        let (token, after) = match first {
            '"' => text(rest, column)?,
            c if c.is_ascii_digit() => number(rest, column)?,
            c if begins_name(c) => name(rest),
            _ => sign(rest, column)?,
        };
        tokens.push((column, token));
        column += count(rest) - count(after);
        rest = after;
    }
    tokens.push((column, Token::End));
    Ok(tokens)
}

fn count(text: &str) -> usize {
    text.chars().count()
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Splits a string after its leading characters of a kind.
fn while_is(text: &str, kind: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !kind(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Reads a name. Names contain dashes, because there is no subtraction.
fn name(rest: &str) -> (Token, &str) {
    let (name, after) = while_is(rest, |c| begins_name(c) || c.is_ascii_digit() || c == '-');
    let token = match name.to_ascii_lowercase().as_str() {
        "true" => Token::Truth(true),
        "false" => Token::Truth(false),
        _ => Token::Name(name.to_owned()),
    };
    (token, after)
}

fn number(rest: &str, column: usize) -> Result<(Token, &str), QueryError> {
    let (digits, after) = while_is(rest, |c| c.is_ascii_digit() || c == '.');
    let number = digits.parse().map_err(|_| QueryError::new(column, format!("invalid number {digits:?}")))?;
    Ok((Token::Number(number), after))
}

/// Reads a string. There are no escapes, as in Juju.
fn text(rest: &str, column: usize) -> Result<(Token, &str), QueryError> {
    let closed = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (text, after) = closed.ok_or_else(|| QueryError::new(column, "a string is not closed"))?;
    Ok((Token::Text(text.to_owned()), after))
}

fn sign(rest: &str, column: usize) -> Result<(Token, &str), QueryError> {
    for sign in SIGNS {
        if let Some(after) = rest.strip_prefix(sign) {
            return Ok((Token::Sign(sign), after));
        }
    }
    let first = rest.chars().next().map(String::from).unwrap_or_default();
    let reason = match first.as_str() {
        "=" | "&" | "|" => format!("unknown operator `{first}`: write `{first}{first}`"),
        "'" => "unexpected character \"'\": texts stand in double quotes".to_owned(),
        _ => format!("unexpected character '{first}'"),
    };
    Err(QueryError::new(column, reason))
}
