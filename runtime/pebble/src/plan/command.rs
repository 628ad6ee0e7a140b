//! Command lines: words, quotes, and a group of default arguments in brackets.

/// A command line that cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    /// There is no command.
    #[error("the command is empty")]
    Empty,
    /// A quote or an escape is open at the end.
    #[error("a quote or a backslash is not closed")]
    Open,
    /// Brackets are not a group at the end.
    #[error("[ ... ] must stand once, at the end of the command")]
    Group,
}

/// Splits a command line into arguments, as a shell does without expanding anything. `cmd [ a b ]` has the default
/// arguments `a b`.
pub(crate) fn split(line: &str) -> Result<Vec<String>, CommandError> {
    let words = words(line)?;
    let mut arguments = Vec::with_capacity(words.len());
    let mut open = false;
    let last = words.len().saturating_sub(1);
    for (index, word) in words.into_iter().enumerate() {
        match (word.quoted, word.text.as_str()) {
            (false, "[") if !open && index > 0 => open = true,
            (false, "]") if open && index == last => return Ok(arguments),
            (false, "[" | "]") => return Err(CommandError::Group),
            _ => arguments.push(word.text),
        }
    }
    match (open, arguments.is_empty()) {
        (true, _) => Err(CommandError::Group),
        (false, true) => Err(CommandError::Empty),
        (false, false) => Ok(arguments),
    }
}

/// A word of a command line.
#[derive(Default)]
struct Word {
    text: String,
    /// Quoted at least in part, so that it is no bracket.
    quoted: bool,
}

fn words(line: &str) -> Result<Vec<Word>, CommandError> {
    let mut words = Vec::new();
    let mut current: Option<Word> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            words.extend(current.take());
            continue;
        }
        let word = current.get_or_insert_default();
        match letter {
            '\'' => {
                word.quoted = true;
                loop {
                    match letters.next().ok_or(CommandError::Open)? {
                        '\'' => break,
                        other => word.text.push(other),
                    }
                }
            }
            '"' => {
                word.quoted = true;
                loop {
                    match letters.next().ok_or(CommandError::Open)? {
                        '"' => break,
                        '\\' => match letters.next().ok_or(CommandError::Open)? {
                            '\n' => {}
                            special @ ('"' | '\\' | '$' | '`') => word.text.push(special),
                            other => word.text.extend(['\\', other]),
                        },
                        other => word.text.push(other),
                    }
                }
            }
            '\\' => {
                word.quoted = true;
                word.text.push(letters.next().ok_or(CommandError::Open)?);
            }
            other => word.text.push(other),
        }
    }
    words.extend(current);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        for (line, expected) in [
            ("cmd arg1 \"arg2a arg2b\"", vec!["cmd", "arg1", "arg2a arg2b"]),
            ("sh -c 'echo \"$HOME\"'", vec!["sh", "-c", "echo \"$HOME\""]),
            (r#"a\ b "c\"d" e\\f "g\h""#, vec!["a b", "c\"d", "e\\f", "g\\h"]),
            ("cmd --x [ --y 1 ]", vec!["cmd", "--x", "--y", "1"]),
            ("cmd '[' ']'", vec!["cmd", "[", "]"]),
            ("  cmd\n  'a''b' ''  ", vec!["cmd", "ab", ""]),
        ] {
            assert_eq!(split(line).unwrap(), expected, "{line}");
        }
        for (line, expected) in [
            ("", CommandError::Empty),
            ("'a", CommandError::Open),
            ("a \"", CommandError::Open),
            ("a \\", CommandError::Open),
            ("a [ b", CommandError::Group),
            ("a [ b ] c", CommandError::Group),
            ("[ a ]", CommandError::Group),
            ("a ]", CommandError::Group),
        ] {
            assert_eq!(split(line), Err(expected), "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[^']{0,8}", 1..5)) {
            let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&line).unwrap(), words);
        }
    }
}
