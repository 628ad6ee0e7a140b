//! `printf`

use std::ops::ControlFlow;

use super::{
    call::Call,
    environment::is_name,
    escapes::{EscapeContext, escape, unescape},
};
use crate::interpreter::Unwind;

/// The widest column, and the most digits: larger ones would fill memory.
const MAX_WIDTH: usize = 4_096;

/// Work for a conversion beside the bytes that it reads and makes.
const CONVERSION: usize = 64;

const USAGE: &str = "usage: printf [-v var] format [arguments]";

/// Runs `printf [-v VARIABLE] FORMAT [ARGUMENT...]`. The format repeats until it has used all arguments.
pub(super) fn printf(call: &mut Call<'_>) -> Result<u8, Unwind> {
    let (mut arguments, mut variable) = (call.arguments, None);
    while let [first, rest @ ..] = arguments {
        let Some(option) = first.strip_prefix('-').filter(|option| !option.is_empty()) else { break };
        arguments = rest;
        variable = match (option, option.strip_prefix('v'), rest) {
            ("-", ..) => break,
            (_, Some(""), [name, rest @ ..]) => {
                arguments = rest;
                Some(name.as_str())
            }
            (_, Some(""), []) => return call.fail(2, &format!("-v: option requires an argument\n{USAGE}")),
            (_, Some(name), _) => Some(name),
            (_, None, _) => {
                let shown: String = option.chars().take(1).collect();
                return call.fail(2, &format!("-{shown}: invalid option\n{USAGE}"));
            }
        };
    }
    if let Some(name) = variable.filter(|name| !is_name(name)) {
        return call.fail(2, &format!("`{name}': not a valid identifier"));
    }
    let Some((format, arguments)) = arguments.split_first() else {
        return call.fail(2, USAGE);
    };
    let mut printing = Printing { call, arguments, made: Vec::new(), code: 0 };
    loop {
        let before = printing.arguments.len();
        let went = printing.round(format)?;
        printing.flush(variable)?;
        let left = printing.arguments.len();
        if went.is_break() || left == 0 || left == before {
            return Ok(printing.code);
        }
    }
}

/// The state of a call.
struct Printing<'p, 'a> {
    call: &'p mut Call<'a>,
    /// The arguments that no conversion has taken yet.
    arguments: &'a [String],
    /// The output so far.
    made: Vec<u8>,
    code: u8,
}

impl<'a> Printing<'_, 'a> {
    /// Goes through the format once. It breaks off at an unknown conversion, and at a `\c` of an argument.
    fn round(&mut self, format: &str) -> Result<ControlFlow<()>, Unwind> {
        self.call.shell.pay(format.len().saturating_add(CONVERSION))?;
        let mut rest = format;
        while let Some((plain, special)) = rest.find(['\\', '%']).map(|at| rest.split_at(at)) {
            self.made.extend_from_slice(plain.as_bytes());
            let mut characters = special.chars();
            let is_escape = characters.next() == Some('\\');
            let behind = characters.as_str();
            let behind = match is_escape {
                true => escape(behind, EscapeContext::Format, &mut self.made),
                false => self.conversion(behind)?,
            };
            match behind {
                Some(behind) => rest = behind,
                None => return Ok(ControlFlow::Break(())),
            }
        }
        self.made.extend_from_slice(rest.as_bytes());
        Ok(ControlFlow::Continue(()))
    }

    /// Writes the output, or sets the variable to it.
    fn flush(&mut self, variable: Option<&str>) -> Result<(), Unwind> {
        let Some(name) = variable else {
            return self.call.shell.write(self.call.streams.stdout, &std::mem::take(&mut self.made));
        };
        self.call.shell.check(self.made.len())?;
        self.call.shell.pay(self.made.len())?;
        // A variable is text, and ends at a NUL byte, as in C.
        let text = self.made.split(|byte| *byte == 0).next().unwrap_or_default();
        self.call.shell.scope.set(name, String::from_utf8_lossy(text).into_owned());
        Ok(())
    }

    /// Runs the conversion after a `%`, and returns the rest of the format. None if the output ends here.
    fn conversion<'f>(&mut self, text: &'f str) -> Result<Option<&'f str>, Unwind> {
        if let Some(behind) = text.strip_prefix('%') {
            self.made.push(b'%');
            return Ok(Some(behind));
        }
        let (flags, rest) = split_while(text, |character| "-+ #0'".contains(character));
        let (width, rest) = self.size(rest)?;
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (precision, rest) = self.size(rest)?;
                // A negative precision counts as none.
                (usize::try_from(precision).ok(), rest)
            }
            None => (None, rest),
        };
        let width_of = |size: u64| usize::try_from(size).ok().filter(|size| *size <= MAX_WIDTH);
        let size = width_of(width.unsigned_abs()).filter(|_| precision.is_none_or(|most| most <= MAX_WIDTH));
        let Some(size) = size else {
            let wide = width.unsigned_abs().max(precision.unwrap_or(0) as u64);
            return self.ends(&format!("{wide}: column too wide"));
        };
        let column = Column { flags, left: flags.contains('-') || width < 0, width: size, precision };
        // Sizes of C's types have no effect.
        let mut characters = rest.trim_start_matches(['h', 'l', 'L', 'j', 'z', 't']).chars();
        let kind = characters.next();
        self.call.shell.pay(size.saturating_add(precision.unwrap_or(0)).saturating_add(CONVERSION))?;
        match kind {
            Some('s') => {
                let text = self.next()?;
                column.text(text.as_bytes(), &mut self.made);
            }
            Some('b') => {
                let mut bytes = Vec::new();
                let went = unescape(self.next()?, EscapeContext::Argument, &mut bytes);
                column.text(&bytes, &mut self.made);
                if went.is_break() {
                    return Ok(None);
                }
            }
            Some('c') => {
                let first = self.next()?.bytes().next().unwrap_or(0);
                Column { precision: None, ..column }.text(&[first], &mut self.made);
            }
            Some('d' | 'i') => {
                let number = self.number(i64::MIN.into(), i64::MAX.into())?;
                let sign = match number {
                    ..0 => "-",
                    _ if flags.contains('+') => "+",
                    _ if flags.contains(' ') => " ",
                    _ => "",
                };
                column.number(sign, &number.unsigned_abs().to_string(), &mut self.made);
            }
            Some(kind @ ('u' | 'x' | 'X' | 'o')) => {
                let number = self.number(-i128::from(u64::MAX), u64::MAX.into())?;
                // A negative number wraps around, as in C.
                column.unsigned(kind, number as u64, &mut self.made);
            }
            Some(other) => return self.ends(&format!("`{other}': invalid format character")),
            None => return self.ends("`%': missing format character"),
        }
        Ok(Some(characters.as_str()))
    }

    /// Writes an error that ends the output.
    fn ends<T>(&mut self, error: &str) -> Result<Option<T>, Unwind> {
        self.code = self.call.fail(1, error)?;
        Ok(None)
    }

    /// Takes the next argument, and pays for it. Empty if there are no more.
    fn next(&mut self) -> Result<&'a str, Unwind> {
        let Some((first, rest)) = self.arguments.split_first() else { return Ok("") };
        self.arguments = rest;
        self.call.shell.pay(first.len())?;
        Ok(first)
    }

    /// Parses a width or a precision, which may be an argument (`*`), and returns it with the rest. 0 if there is none.
    fn size<'f>(&mut self, text: &'f str) -> Result<(i64, &'f str), Unwind> {
        if let Some(rest) = text.strip_prefix('*') {
            let number = self.number(i64::MIN.into(), i64::MAX.into())?;
            return Ok((i64::try_from(number).unwrap_or(i64::MAX), rest));
        }
        let (digits, rest) = split_while(text, |character| character.is_ascii_digit());
        let size = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i64::MAX) };
        Ok((size, rest))
    }

    /// Parses the next argument as a number within bounds. It writes an error for a text that is none, and goes on.
    fn number(&mut self, least: i128, most: i128) -> Result<i128, Unwind> {
        let text = self.next()?;
        let (number, error) = number(text);
        let within = number.clamp(least, most);
        let error = if within == number { error } else { Some("Numerical result out of range") };
        if let Some(error) = error {
            self.code = self.call.fail(1, &format!("{text}: {error}"))?;
        }
        Ok(within)
    }
}

/// Parses a number as C does: a leading 0 means octal, 0x hexadecimal, a quote the code of the next character. Returns
/// the number of the leading digits, and an error for the rest of the text.
fn number(text: &str) -> (i128, Option<&'static str>) {
    if let Some(character) = text.strip_prefix(['\'', '"']) {
        return (character.chars().next().map_or(0, |character| u32::from(character).into()), None);
    }
    if text.is_empty() {
        return (0, None);
    }
    let text = text.trim_start();
    let (negative, unsigned) = match text.strip_prefix(['-', '+']) {
        Some(unsigned) => (text.starts_with('-'), unsigned),
        None => (false, text),
    };
    let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
    let is_octal =
        unsigned.starts_with('0') && unsigned.chars().nth(1).is_some_and(|next| next.is_ascii_digit());
    let (radix, digits, error) = match hexadecimal {
        Some(digits) => (16, digits, "invalid hex number"),
        None if is_octal => (8, unsigned, "invalid octal number"),
        None => (10, unsigned, "invalid number"),
    };
    let (digits, behind) = split_while(digits, |character| character.is_digit(radix));
    let number = digits
        .chars()
        .filter_map(|digit| digit.to_digit(radix))
        .fold(0_i128, |number, digit| number.saturating_mul(radix.into()).saturating_add(digit.into()));
    let error = (digits.is_empty() || !behind.is_empty()).then_some(error);
    (if negative { -number } else { number }, error)
}

/// The format of one value in its column.
#[derive(Clone, Copy)]
struct Column<'f> {
    flags: &'f str,
    /// True if the padding stands on the right.
    left: bool,
    width: usize,
    precision: Option<usize>,
}

impl Column<'_> {
    /// Writes a text. The precision is the most bytes of it.
    fn text(self, text: &[u8], made: &mut Vec<u8>) {
        let most = self.precision.unwrap_or(usize::MAX).min(text.len());
        self.fill(text.get(..most).unwrap_or(text), made);
    }

    /// Writes a number. The precision is the fewest digits.
    fn number(self, prefix: &str, digits: &str, made: &mut Vec<u8>) {
        let digits = if self.precision == Some(0) && digits == "0" { "" } else { digits };
        let zeros = match self.precision {
            Some(fewest) => fewest,
            None if self.flags.contains('0') && !self.left => self.width.saturating_sub(prefix.len()),
            None => 0,
        };
        let zeros = "0".repeat(zeros.saturating_sub(digits.len()));
        self.fill([prefix, &zeros, digits].concat().as_bytes(), made);
    }

    /// Writes a number in octal (`o`), hexadecimal (`x`, `X`) or decimal digits.
    fn unsigned(self, kind: char, number: u64, made: &mut Vec<u8>) {
        let digits = match kind {
            'o' => format!("{number:o}"),
            'x' => format!("{number:x}"),
            'X' => format!("{number:X}"),
            _ => number.to_string(),
        };
        let alternate = self.flags.contains('#');
        let (prefix, precision) = match kind {
            'x' if alternate && number != 0 => ("0x", self.precision),
            'X' if alternate && number != 0 => ("0X", self.precision),
            // The first digit is a 0.
            'o' if alternate && number == 0 => ("", self.precision.filter(|fewest| *fewest > 0)),
            'o' if alternate && self.precision.unwrap_or(0) <= digits.len() => ("0", self.precision),
            _ => ("", self.precision),
        };
        Self { precision, ..self }.number(prefix, &digits, made);
    }

    fn fill(self, value: &[u8], made: &mut Vec<u8>) {
        let blanks = vec![b' '; self.width.saturating_sub(value.len())];
        made.extend(if self.left { [value, &blanks] } else { [&blanks, value] }.concat());
    }
}

/// Splits a text after its leading characters that satisfy a condition.
fn split_while(text: &str, holds: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|character| !holds(character)).unwrap_or(text.len()))
}
