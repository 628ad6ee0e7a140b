//! `grep`

use regex::bytes::{Regex, RegexBuilder};

use super::call::{Call, Parsed, bare, lines};
use crate::interpreter::{Step, Unwind};

/// The largest compiled pattern, in bytes. It bounds the time of compiling, too.
const MAX_COMPILED: usize = 256 << 10;

/// The longest pattern, in bytes. A longer one would exceed [`MAX_COMPILED`].
const MAX_PATTERN: usize = 64 << 10;

/// Work for each byte of a pattern: its syntax tree takes so much memory.
const COMPILING_BYTE: usize = 256;

/// Work for compiling a pattern, in bytes: most are small. Counts multiply the states that they repeat, and classes
/// are tables of all Unicode characters.
const COMPILING: usize = 32 << 10;
const COMPILING_CLASSES: usize = 128 << 10;
const COMPILING_COUNTS: usize = 1 << 20;

/// The most states of a compiled pattern.
const MAX_STATES: usize = MAX_COMPILED / 16;

/// Runs `grep [-EFchilnoqsvwx] [-e PATTERN] [PATTERN] [FILE...]`.
pub(super) fn grep(mut call: Call<'_>) -> Step<'_, u8> {
    Box::pin(async move {
        let Some(mut parsed) = call.options("EFchilnoqsvwxGH", "e")? else { return Ok(2) };
        let mut patterns: Vec<String> = parsed.values('e').map(str::to_owned).collect();
        if patterns.is_empty() {
            if parsed.operands.is_empty() {
                return call.fail(2, "a pattern is missing");
            }
            patterns.push(parsed.operands.remove(0));
        }
        let has = |wanted: char| !parsed.has('F') && patterns.iter().any(|pattern| pattern.contains(wanted));
        let length = patterns.iter().map(|pattern| pattern.len() + 1).fold(0, usize::saturating_add);
        if length > MAX_PATTERN {
            return call.fail(2, "the pattern is too large");
        }
        call.shell.pay(length.saturating_mul(COMPILING_BYTE))?;
        call.shell.pay(match () {
            () if has('{') => COMPILING_COUNTS,
            () if has('\\') || has('[') || parsed.has('i') || parsed.has('w') => COMPILING_CLASSES,
            () => COMPILING,
        })?;
        let pattern = match compiled(&patterns, &parsed) {
            Ok(pattern) => pattern,
            Err(error) => return call.fail(2, &error.to_string()),
        };
        let price = price(&patterns, length, &parsed);
        let (contents, all) = call.contents(&parsed.operands).await?;
        let named = (contents.len() > 1 || parsed.has('H')) && !parsed.has('h');
        let mut found = false;
        for (path, content) in &contents {
            call.shell.pay(content.len().saturating_mul(price))?;
            let prefix = if named { format!("{path}:") } else { String::new() };
            found |= search(&mut call, (&pattern, price), &parsed, (&prefix, path), content)?;
        }
        Ok(match (all || parsed.has('q') && found, found) {
            (false, _) => 2,
            (true, true) => 0,
            (true, false) => 1,
        })
    })
}

/// Searches one text, and returns true if a line matched.
fn search(
    call: &mut Call<'_>,
    (pattern, price): (&Regex, usize),
    parsed: &Parsed,
    (prefix, path): (&str, &str),
    content: &[u8],
) -> Result<bool, Unwind> {
    let mut count = 0;
    let quiet = parsed.has('q') || parsed.has('c') || parsed.has('l');
    for (number, line) in lines(content).map(bare).enumerate() {
        if pattern.is_match(line) == parsed.has('v') {
            continue;
        }
        count += 1;
        if quiet {
            continue;
        }
        let number = if parsed.has('n') { format!("{}:", number + 1) } else { String::new() };
        let front = format!("{prefix}{number}");
        match parsed.has('o') {
            true if parsed.has('v') => {}
            true => parts(call, (pattern, price), &front, line)?,
            false => show(call, &front, line)?,
        }
    }
    if parsed.has('q') {
    } else if parsed.has('l') {
        if count > 0 {
            let shown = if path == "-" { "(standard input)" } else { path };
            call.say(&format!("{shown}\n"))?;
        }
    } else if parsed.has('c') {
        call.say(&format!("{prefix}{count}\n"))?;
    }
    Ok(count > 0)
}

/// Writes each part of a line that matches. Each search may look at the whole rest of the line, so each pays for it.
fn parts(
    call: &mut Call<'_>,
    (pattern, price): (&Regex, usize),
    front: &str,
    line: &[u8],
) -> Result<(), Unwind> {
    let mut at = 0;
    while let Some(left) = line.len().checked_sub(at) {
        call.shell.pay(left.saturating_mul(price))?;
        let Some(found) = pattern.find_at(line, at) else { break };
        if found.is_empty() {
            at = found.end() + 1;
            continue;
        }
        at = found.end();
        show(call, front, found.as_bytes())?;
    }
    Ok(())
}

fn show(call: &mut Call<'_>, front: &str, part: &[u8]) -> Result<(), Unwind> {
    for bytes in [front.as_bytes(), part, b"\n"] {
        call.shell.write(call.streams.stdout, bytes)?;
    }
    Ok(())
}

/// Returns the work for one byte of text: the most states of the pattern that it may be tried with.
fn price(patterns: &[String], length: usize, parsed: &Parsed) -> usize {
    let special = |pattern: &String| pattern.contains(['*', '+', '?', '{', '|', '[', '(', '.', '\\']);
    if parsed.has('F') || !patterns.iter().any(special) {
        // One search finds all plain texts at once.
        return length / 16 + 4;
    }
    // A counted repetition multiplies the states.
    let counts = patterns.iter().flat_map(|pattern| pattern.split('{').skip(1)).filter_map(|behind| {
        let numbers = behind.split(['}', '\\']).next()?.split(',');
        numbers.filter_map(|number| number.parse::<usize>().ok()).max()
    });
    let times = counts.fold(1, |times: usize, count| times.saturating_mul(count.max(1))).min(MAX_STATES);
    (length / 2 + 4).saturating_mul(times)
}

/// An error of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum PatternError {
    /// The compiled pattern would exceed its bound in memory.
    #[error("the pattern is too large")]
    TooLarge,
    /// The pattern is no regular expression.
    #[error("the pattern is no regular expression")]
    Unreadable,
}

fn compiled(patterns: &[String], parsed: &Parsed) -> Result<Regex, PatternError> {
    let each: Vec<String> = patterns
        .iter()
        .flat_map(|pattern| pattern.split('\n'))
        .map(|pattern| match () {
            () if parsed.has('F') => regex::escape(pattern),
            () if parsed.has('E') => pattern.to_owned(),
            () => extended(pattern),
        })
        .map(|pattern| match () {
            () if parsed.has('x') => format!("^(?:{pattern})$"),
            () if parsed.has('w') => format!(r"\b(?:{pattern})\b"),
            () => format!("(?:{pattern})"),
        })
        .collect();
    RegexBuilder::new(&each.join("|"))
        .case_insensitive(parsed.has('i'))
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(64)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
            _ => PatternError::Unreadable,
        })
}

/// Converts a basic pattern to an extended one. `\(` groups and `(` is text in a basic one; an extended one is the
/// other way round.
fn extended(pattern: &str) -> String {
    let mut result = String::new();
    let mut characters = pattern.chars();
    let mut is_first = true;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(special @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => result.push(special),
                Some(other) => result.extend(['\\', other]),
                None => result.push_str(r"\\"),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => result.extend(['\\', character]),
            // The `*` has nothing to repeat.
            '*' if is_first => result.push_str(r"\*"),
            character => result.push(character),
        }
        is_first = false;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn basic_patterns_have_their_operators_behind_a_backslash() {
        for (basic, expected) in [
            (r"a\|b", "a|b"),
            (r"\(a\)+", r"(a)\+"),
            ("*a*", r"\*a*"),
            (r"a\.b\", r"a\.b\\"),
            ("^V{1}", r"^V\{1\}"),
        ] {
            assert_eq!(extended(basic), expected, "{basic}");
        }
    }
}
