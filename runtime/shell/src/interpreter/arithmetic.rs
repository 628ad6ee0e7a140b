//! Arithmetic of `$((...))`: integers of 64 bits that wrap around.

/// The deepest nesting of parentheses and signs: each level takes stack.
const MAX_DEPTH: u32 = 32;

/// The longest text of a number, in bytes.
const LONGEST: usize = 128;

/// The most characters of a wrong text in a message.
const SHOWN: usize = 32;

/// An error of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ArithmeticError {
    /// A character or word is out of place.
    #[error("unexpected {0:?}")]
    Unexpected(String),
    /// Too many parentheses or signs within each other.
    #[error("nested too deep")]
    TooDeep,
    /// A parenthesis is not closed.
    #[error("a parenthesis is not closed")]
    NotClosed,
    /// A word in the expression, or a variable's value, is no number.
    #[error("invalid number {0:?} (one that begins with 0 is octal)")]
    NoNumber(String),
    /// A division by zero.
    #[error("division by 0")]
    DivisionByZero,
}

/// Binary operators from the weakest to the strongest. A longer one comes before its own prefix.
const LEVELS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// Evaluates an expression. Names in it are variables.
pub(super) fn evaluate<'v>(text: &str, variable: &dyn Fn(&str) -> &'v str) -> Result<i64, ArithmeticError> {
    let mut reader = Reader { rest: text, variable, left: MAX_DEPTH };
    let value = reader.level(0)?;
    match reader.rest.trim_start() {
        "" => Ok(value),
        rest => Err(ArithmeticError::Unexpected(rest.chars().take(SHOWN).collect())),
    }
}

struct Reader<'t, 'v> {
    rest: &'t str,
    variable: &'t dyn Fn(&str) -> &'v str,
    left: u32,
}

impl Reader<'_, '_> {
    fn level(&mut self, level: usize) -> Result<i64, ArithmeticError> {
        let Some(operators) = LEVELS.get(level) else { return self.operand() };
        let mut value = self.level(level + 1)?;
        loop {
            self.rest = self.rest.trim_start();
            let found = operators.iter().find(|operator| self.rest.starts_with(**operator));
            let Some(operator) = found else { return Ok(value) };
            self.rest = self.rest.get(operator.len()..).unwrap_or_default();
            let other = self.level(level + 1)?;
            value = apply(operator, value, other)?;
        }
    }

    fn operand(&mut self) -> Result<i64, ArithmeticError> {
        self.left = self.left.checked_sub(1).ok_or(ArithmeticError::TooDeep)?;
        self.rest = self.rest.trim_start();
        let mut characters = self.rest.chars();
        let first = characters.next();
        let value = match first {
            Some('-') => self.behind(1, Self::operand)?.wrapping_neg(),
            Some('+') => self.behind(1, Self::operand)?,
            Some('!') => i64::from(self.behind(1, Self::operand)? == 0),
            Some('(') => {
                let value = self.behind(1, |reader| reader.level(0))?;
                self.rest = self.rest.trim_start();
                self.rest = self.rest.strip_prefix(')').ok_or(ArithmeticError::NotClosed)?;
                value
            }
            Some(first) if first.is_ascii_alphanumeric() || first == '_' => {
                let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
                let end = self.rest.find(|character| !is_part(character)).unwrap_or(self.rest.len());
                let (word, rest) = self.rest.split_at(end);
                self.rest = rest;
                self.number(word)?
            }
            Some(other) => return Err(ArithmeticError::Unexpected(other.to_string())),
            // An empty expression is 0, as in other shells.
            None => 0,
        };
        self.left += 1;
        Ok(value)
    }

    fn behind(
        &mut self,
        bytes: usize,
        read: impl FnOnce(&mut Self) -> Result<i64, ArithmeticError>,
    ) -> Result<i64, ArithmeticError> {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        read(self)
    }

    fn number(&self, word: &str) -> Result<i64, ArithmeticError> {
        let text = match word.starts_with(|first: char| first.is_ascii_digit()) {
            true => word,
            false => (self.variable)(word),
        };
        // A name may appear any number of times, so a long value is not parsed each time.
        let number = if text.len() > LONGEST { None } else { integer(text) };
        number.ok_or_else(|| ArithmeticError::NoNumber(text.chars().take(SHOWN).collect()))
    }
}

/// Parses a number as C writes it: a leading 0 means octal, 0x hexadecimal. An empty text is 0.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    if digits.is_empty() {
        return text.is_empty().then_some(0);
    }
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if digits.starts_with(['-', '+']) {
        return None;
    }
    // The smallest number has no positive counterpart.
    let number = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -number } else { number }).ok()
}

fn apply(operator: &str, one: i64, other: i64) -> Result<i64, ArithmeticError> {
    Ok(match operator {
        "||" => i64::from(one != 0 || other != 0),
        "&&" => i64::from(one != 0 && other != 0),
        "==" => i64::from(one == other),
        "!=" => i64::from(one != other),
        "<=" => i64::from(one <= other),
        ">=" => i64::from(one >= other),
        "<" => i64::from(one < other),
        ">" => i64::from(one > other),
        "+" => one.wrapping_add(other),
        "-" => one.wrapping_sub(other),
        "*" => one.wrapping_mul(other),
        "/" if other != 0 => one.wrapping_div(other),
        "%" if other != 0 => one.wrapping_rem(other),
        _ => return Err(ArithmeticError::DivisionByZero),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<i64, ArithmeticError> {
        evaluate(text, &|name| if name == "seven" { "7" } else { "" })
    }

    #[test]
    fn numbers_are_computed_as_in_other_shells() {
        for (text, expected) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("10 - 2 - 3", 5),
            ("seven % 4", 3),
            ("-seven + none", -7),
            ("seven >= 7 && !0", 1),
            ("9223372036854775807 + 1", i64::MIN),
            ("", 0),
            ("010 + 0x1F", 39),
        ] {
            assert_eq!(check(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for text in [
            "1 +* 2",
            "1 / 0",
            "1 % (1 - 1)",
            "(1",
            "1)",
            "1 2",
            "a = 1",
            "99999999999999999999",
            "1x",
            "08",
            "0x",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        for text in ["(", "-", "!"] {
            assert!(check(&text.repeat(100_000)).is_err(), "{text}");
        }
        assert_eq!(check(&format!("{}1", "1 + ".repeat(10_000))), Ok(10_001));
    }
}
