//! `tr`

use super::call::Call;
use crate::interpreter::Halt;

/// The most characters of a set: all that have one byte.
const MAX_SET: usize = 256;

/// `tr [-d | -s] SET [SET]`
pub(super) fn tr(call: &mut Call<'_>) -> Result<u8, Halt> {
    let Some(parsed) = call.options("ds", "")? else { return Ok(1) };
    let sets: Option<Vec<Vec<char>>> = parsed.operands.iter().map(|operand| set(operand)).collect();
    let Some(sets) = sets else {
        return call.fail(1, "a set of at most 256 characters, ranges and classes is expected");
    };
    let content = call.shell.read_all(call.streams.stdin)?;
    call.shell.pay(content.len().saturating_mul(4))?;
    let text = String::from_utf8_lossy(&content);
    let squeezed = |text: &mut dyn Iterator<Item = char>, set: &[char]| {
        let mut result = String::new();
        for character in text {
            if !(set.contains(&character) && result.ends_with(character)) {
                result.push(character);
            }
        }
        result
    };
    let result = match (sets.as_slice(), parsed.has('d'), parsed.has('s')) {
        ([set], true, false) => text.chars().filter(|character| !set.contains(character)).collect(),
        ([set], false, true) => squeezed(&mut text.chars(), set),
        ([from, to], false, squeeze) => {
            let Some(last) = to.last() else {
                return call.fail(1, "when not truncating set1, string2 must be non-empty");
            };
            let mut replaced =
                text.chars().map(|character| match from.iter().position(|expected| *expected == character) {
                    Some(at) => *to.get(at).unwrap_or(last),
                    None => character,
                });
            match squeeze {
                true => squeezed(&mut replaced, to),
                false => replaced.collect(),
            }
        }
        _ => return call.fail(1, "one set with -d or -s is expected, or two"),
    };
    call.say(&result)?;
    Ok(0)
}

/// `a-z`, `[:upper:]`, `\n`
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
