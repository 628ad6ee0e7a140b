//! Values of labels, with variables in them.

use std::collections::BTreeMap;

/// Returns a value with the variables of a service in place of `$NAME` and `${NAME}`. Unknown ones are empty. The
/// value is cut to `most` bytes.
pub(crate) fn expanded(value: &str, variables: &BTreeMap<String, String>, most: usize) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('$') {
        add(&mut text, before, most);
        match variable(after) {
            Some((name, left)) => {
                add(&mut text, variables.get(name).map_or("", String::as_str), most);
                rest = left;
            }
            None => {
                add(&mut text, "$", most);
                rest = after;
            }
        }
    }
    add(&mut text, rest, most);
    text
}

/// Adds a piece, as far as there is room.
fn add(text: &mut String, piece: &str, most: usize) {
    let room = piece.floor_char_boundary(most.saturating_sub(text.len()));
    text.push_str(piece.get(..room).unwrap_or_default());
}

/// Splits a text after `$` into the name of a variable and the rest.
fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(inside) = text.strip_prefix('{') {
        return inside
            .split_once('}')
            .filter(|(name, _)| end_of_name(name) == name.len() && !name.is_empty());
    }
    let end = end_of_name(text);
    if end == 0 { None } else { text.split_at_checked(end) }
}

/// Returns the length of the name at the begin of a text.
fn end_of_name(text: &str) -> usize {
    if text.starts_with(|letter: char| letter.is_ascii_digit()) {
        return 0;
    }
    text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables() -> BTreeMap<String, String> {
        [("A", "one"), ("B_2", "$A"), ("LONG", &*"ü".repeat(3_000))]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn variables_of_the_service_are_put_in_their_places() {
        for (value, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$A", "one"),
            ("${A}s and $A-$A", "ones and one-one"),
            // The value of a variable is no text to be looked at again.
            ("$B_2", "$A"),
            ("$NONE.", "."),
            ("$", "$"),
            ("5$ or $5", "5$ or $5"),
            ("$$A", "$one"),
            ("${A", "${A"),
            ("${}", "${}"),
            ("${A B}", "${A B}"),
        ] {
            assert_eq!(expanded(value, &variables(), 100), expected, "{value}");
        }
        let cut = expanded("x$LONG$LONG", &variables(), 2_048);
        assert_eq!(cut, format!("x{}", "ü".repeat(1_023)));
    }

    proptest! {
        #[test]
        fn no_value_is_longer_than_its_bound(value in "[$A{}BLONG_2ü ]{0,60}", most in 0..200_usize) {
            prop_assert!(expanded(&value, &variables(), most).len() <= most);
        }
    }
}
