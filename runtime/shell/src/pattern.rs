//! Patterns of shells: `*`, `?`, `[a-z]`, and `\` before what stands for itself.

/// Whether a text matches a pattern as a whole. It takes at most the product of both lengths in steps.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut position) = (0, 0);
    // Where the last `*` stands, and how far it reaches in the text.
    let mut star: Option<(usize, usize)> = None;
    while let Some(character) = text.get(position) {
        match one(pattern.get(at..).unwrap_or_default(), *character) {
            Step::Star => {
                at += 1;
                star = Some((at, position));
            }
            Step::Matched(length) => {
                at += length;
                position += 1;
            }
            Step::Differs => match &mut star {
                Some((behind, reached)) => {
                    *reached += 1;
                    at = *behind;
                    position = *reached;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|character| *character == '*')
}

enum Step {
    Star,
    /// So many characters of the pattern match the one of the text.
    Matched(usize),
    Differs,
}

fn one(pattern: &[char], character: char) -> Step {
    let literal = |length: usize, expected: char| match expected == character {
        true => Step::Matched(length),
        false => Step::Differs,
    };
    match pattern {
        [] => Step::Differs,
        ['*', ..] => Step::Star,
        ['?', ..] => Step::Matched(1),
        ['\\', expected, ..] => literal(2, *expected),
        ['[', rest @ ..] => match set(rest, character) {
            Some((length, true)) => Step::Matched(length + 1),
            Some((_, false)) => Step::Differs,
            None => literal(1, '['),
        },
        [expected, ..] => literal(1, *expected),
    }
}

/// How long the set is, and whether it has the character; none if no `]` closes it.
fn set(pattern: &[char], character: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.first(), Some('!' | '^'));
    let mut at = usize::from(negated);
    let first = at;
    let mut found = false;
    loop {
        match pattern.get(at..)? {
            [']', ..] if at > first => return Some((at + 1, found != negated)),
            [low, '-', high, ..] if *high != ']' => {
                found |= (*low..=*high).contains(&character);
                at += 3;
            }
            ['\\', expected, ..] => {
                found |= *expected == character;
                at += 2;
            }
            [expected, ..] => {
                found |= *expected == character;
                at += 1;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("?", "", false),
            ("[a-c]?", "bz", true),
            ("[!a-c]", "b", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("*.charm", "mysql.charm", true),
            ("a*b*c", "a-b-b-c", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let text = "a".repeat(10_000);
        assert!(!matches(&format!("{}b", "a*".repeat(100)), &text));
    }
}
