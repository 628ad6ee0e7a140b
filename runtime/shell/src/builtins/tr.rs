//! `tr`

use std::collections::{BTreeMap, BTreeSet};

use super::call::Call;
use crate::interpreter::Unwind;

/// The most characters of a set: all one-byte characters.
const MAX_SET: usize = 256;

/// The longest text of a set, in bytes. A longer one would exceed [`MAX_SET`].
const MAX_TEXT: usize = 4_096;

/// Work for a byte of a set: each `[:` searches the rest for its end.
const SET: usize = 256;

/// Work for a byte of the text: a set is searched for its character.
const CHARACTER: usize = 8;

/// Runs `tr [-d | -s] SET [SET]`.
pub(super) fn tr(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let Some(parsed) = call.options("ds", "")? else { return Ok(1) };
    let length = parsed.operands.iter().map(String::len).max().unwrap_or(0);
    call.shell.pay(length.min(MAX_TEXT).saturating_mul(SET))?;
    let short = parsed.operands.iter().filter(|operand| operand.len() <= MAX_TEXT).take(2);
    let sets: Vec<Vec<char>> = short.filter_map(|operand| set(operand)).collect();
    if sets.len() < parsed.operands.len().min(2) {
        return call.fail(1, "a set of at most 256 characters, ranges and classes is expected");
    }
    let (from, to) = match (sets.as_slice(), parsed.operands.len(), parsed.has('d'), parsed.has('s')) {
        ([set], 1, true, false) | ([set], 1, false, true) => (set, None),
        ([from, to], 2, false, _) => (from, Some(to)),
        _ => return call.fail(1, "one set with -d or -s is expected, or two"),
    };
    let Some(last) = to.map_or(Some('\0'), |to| to.last().copied()) else {
        return call.fail(1, "when not truncating set1, string2 must be non-empty");
    };
    let content = call.shell.read_all(call.streams.stdin)?;
    call.shell.pay(content.len().saturating_mul(CHARACTER))?;
    let text = String::from_utf8_lossy(&content);
    let squeezed = |text: &mut dyn Iterator<Item = char>, set: &[char]| {
        let set: BTreeSet<char> = set.iter().copied().collect();
        let mut result = String::new();
        for character in text {
            if !(set.contains(&character) && result.ends_with(character)) {
                result.push(character);
            }
        }
        result
    };
    let result = match to {
        None if parsed.has('d') => {
            let set: BTreeSet<char> = from.iter().copied().collect();
            text.chars().filter(|character| !set.contains(character)).collect()
        }
        None => squeezed(&mut text.chars(), from),
        Some(to) => {
            // The last place of a repeated character counts.
            let others = to.iter().copied().chain(std::iter::repeat(last));
            let table: BTreeMap<char, char> = from.iter().copied().zip(others).collect();
            let mut replaced = text.chars().map(|character| *table.get(&character).unwrap_or(&character));
            if parsed.has('s') { squeezed(&mut replaced, to) } else { replaced.collect() }
        }
    };
    call.say(&result)?;
    Ok(0)
}

/// Parses a set such as `a-z`, `[:upper:]` or `\n`.
fn set(text: &str) -> Option<Vec<char>> {
    let mut set = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some((class, behind)) = rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
            let is_in: fn(&char) -> bool = match class {
                "upper" => char::is_ascii_uppercase,
                "lower" => char::is_ascii_lowercase,
                "alpha" => char::is_ascii_alphabetic,
                "digit" => char::is_ascii_digit,
                "alnum" => char::is_ascii_alphanumeric,
                "punct" => char::is_ascii_punctuation,
                "space" => char::is_ascii_whitespace,
                _ => return None,
            };
            set.extend((0..=127_u8).map(char::from).filter(is_in));
            rest = behind;
        } else {
            let first = one(&mut rest)?;
            let range = rest.strip_prefix('-').filter(|behind| !behind.is_empty());
            let last = match range {
                Some(behind) => {
                    rest = behind;
                    one(&mut rest)?
                }
                None => first,
            };
            set.extend((first..=last).take(MAX_SET + 1));
        }
        if set.len() > MAX_SET {
            return None;
        }
    }
    Some(set)
}

fn one(rest: &mut &str) -> Option<char> {
    let mut characters = rest.chars();
    let mut first = characters.next()?;
    if first == '\\' {
        first = match characters.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('0') => '\0',
            Some(other) => other,
            None => '\\',
        };
    }
    *rest = characters.as_str();
    Some(first)
}
