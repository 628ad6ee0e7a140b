//! Rust's tokens, without comments, string contents and test-only code.

use anyhow::anyhow;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One token. Literals keep no content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Sign(char),
    /// The content of braces.
    Braces(Vec<Self>),
    /// The content of other brackets.
    Brackets(Vec<Self>),
    Literal,
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is(&self, wanted: char) -> bool {
        *self == Self::Sign(wanted)
    }

    pub(super) fn group(&self) -> Option<&[Self]> {
        match self {
            Self::Braces(inner) | Self::Brackets(inner) => Some(inner),
            _ => None,
        }
    }
}

/// Returns the tokens of a source.
pub(super) fn read(text: &str) -> anyhow::Result<Vec<Token>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow!("this is no Rust: {error}"))?;
    Ok(without_tests(all(stream)))
}

fn all(stream: TokenStream) -> Vec<Token> {
    let token = |tree| match tree {
        TokenTree::Ident(ident) => Token::Word(ident.to_string().trim_start_matches("r#").to_owned()),
        TokenTree::Punct(punct) => Token::Sign(punct.as_char()),
        TokenTree::Literal(_) => Token::Literal,
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            Token::Braces(without_tests(all(group.stream())))
        }
        TokenTree::Group(group) => Token::Brackets(without_tests(all(group.stream()))),
    };
    stream.into_iter().map(token).collect()
}

/// Removes the item after each `#[cfg(test)]`: up to the next `;`, or to the next braces unless they belong to a
/// `use`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        if !token.is('#') || !rest.peek().is_some_and(is_cfg_test) {
            kept.push(token);
            continue;
        }
        let mut is_use = false;
        for token in rest.by_ref() {
            is_use |= token.word() == Some("use");
            if token.is(';') || (!is_use && matches!(token, Token::Braces(_))) {
                break;
            }
        }
    }
    kept
}

fn is_cfg_test(attribute: &Token) -> bool {
    let Token::Brackets(inner) = attribute else { return false };
    match inner.as_slice() {
        [name, Token::Brackets(test)] => {
            name.word() == Some("cfg") && matches!(test.as_slice(), [only] if only.word() == Some("test"))
        }
        _ => false,
    }
}
