//! `echo`, `printf` and `seq`.

use super::call::Call;
use crate::interpreter::Halt;

/// The widest column of `printf`: wider ones are a way to fill memory.
const MAX_WIDTH: usize = 4_096;

/// `echo [-n] [-e] [-E] [WORD...]`, as bash has it.
pub(super) fn echo(call: &mut Call<'_>) -> Result<u8, Halt> {
    let (mut ends, mut escapes) = (true, false);
    let mut words = call.arguments;
    while let [first, rest @ ..] = words {
        let letters = first.strip_prefix('-').filter(|letters| !letters.is_empty());
        let Some(letters) = letters.filter(|letters| letters.chars().all(|c| "neE".contains(c))) else {
            break;
        };
        ends &= !letters.contains('n');
        for letter in letters.chars().filter(|letter| *letter != 'n') {
            escapes = letter == 'e';
        }
        words = rest;
    }
    let mut text = words.join(" ");
    call.shell.pay(text.len())?;
    if escapes {
        let (unescaped, stopped) = unescape(&text);
        ends &= !stopped;
        text = unescaped;
    }
    if ends {
        text.push('\n');
    }
    call.say(&text)?;
    Ok(0)
}

/// Replaces `\n` and its like; whether a `\c` ended it.
fn unescape(text: &str) -> (String, bool) {
    let mut result = String::new();
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        result.push_str(plain);
        let mut characters = escaped.chars();
        let next = characters.next();
        rest = characters.as_str();
        let plain = match next {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('e') => '\u{1b}',
            Some('f') => '\u{c}',
            Some('v') => '\u{b}',
            Some('\\') => '\\',
            Some('c') => return (result, true),
            Some(kind @ ('0' | 'x')) => {
                let (radix, most) = if kind == 'x' { (16, 2) } else { (8, 3) };
                let digits = rest.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
                let (number, behind) = rest.split_at(digits);
                rest = behind;
                match (u32::from_str_radix(number, radix), kind) {
                    (Ok(number), _) => char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER),
                    (Err(_), '0') => '\0',
                    (Err(_), _) => {
                        result.push('\\');
                        kind
                    }
                }
            }
            Some(other) => {
                result.push('\\');
                other
            }
            None => '\\',
        };
        result.push(plain);
    }
    result.push_str(rest);
    (result, false)
}

/// `printf FORMAT [ARGUMENT...]`, the format again for as long as there are arguments.
pub(super) fn printf(call: &mut Call<'_>) -> Result<u8, Halt> {
    let arguments = match call.arguments {
        [first, rest @ ..] if first == "--" => rest,
        arguments => arguments,
    };
    let Some((format, mut arguments)) = arguments.split_first() else {
        return call.fail(2, "usage: printf format [arguments]");
    };
    let (format, _) = unescape(format);
    loop {
        call.shell.pay(widths(&format).saturating_add(format.len()).saturating_add(64))?;
        let before = arguments.len();
        let mut text = String::new();
        match formatted(&format, &mut arguments, &mut text) {
            Ok(()) => call.say(&text)?,
            Err(error) => {
                call.say(&text)?;
                return call.fail(1, &error);
            }
        }
        if arguments.is_empty() || arguments.len() == before {
            return Ok(0);
        }
    }
}

/// How wide the columns of a format are together, at least: what a round of it may make of no arguments at all.
fn widths(format: &str) -> usize {
    let columns = format.split('%').skip(1).map(|column| {
        let column = column.trim_start_matches(['-', '0', '+', ' ', '#']);
        let digits = column.bytes().take_while(u8::is_ascii_digit).count();
        column.get(..digits).and_then(|width| width.parse::<usize>().ok()).unwrap_or(0).min(MAX_WIDTH) + 64
    });
    columns.fold(0, usize::saturating_add)
}

fn formatted(format: &str, arguments: &mut &[String], text: &mut String) -> Result<(), String> {
    let mut rest = format;
    while let Some((plain, behind)) = rest.split_once('%') {
        text.push_str(plain);
        let length = behind.find(|c: char| !"-0+ #.123456789".contains(c)).unwrap_or(behind.len());
        let (column, behind) = behind.split_at(length);
        let mut characters = behind.chars();
        let kind = characters.next();
        rest = characters.as_str();
        let mut next = || match arguments.split_first() {
            Some((first, others)) => {
                *arguments = others;
                first.as_str()
            }
            None => "",
        };
        let value = match kind {
            Some('%') => "%".to_owned(),
            Some('s') => next().to_owned(),
            Some('b') => unescape(next()).0,
            Some('c') => next().chars().take(1).collect(),
            Some('d' | 'i' | 'u') => number(next())?.to_string(),
            Some('x') => format!("{:x}", number(next())?),
            Some('o') => format!("{:o}", number(next())?),
            Some(other) => return Err(format!("`{other}': invalid format character")),
            None => return Err("`%': missing format character".to_owned()),
        };
        pad(column, &value, kind, text)?;
    }
    text.push_str(rest);
    Ok(())
}

fn number(text: &str) -> Result<i64, String> {
    match text {
        "" => Ok(0),
        text => text.trim().parse().map_err(|_| format!("{text}: invalid number")),
    }
}

/// Puts a value into its column: `-`, `0`, a width and a precision.
fn pad(column: &str, value: &str, kind: Option<char>, text: &mut String) -> Result<(), String> {
    let flags = column.find(|c: char| !"-0+ #".contains(c)).unwrap_or(column.len());
    let (flags, column) = column.split_at(flags);
    let (width, precision) = column.split_once('.').map_or((column, None), |(width, it)| (width, Some(it)));
    let size = |text: &str| match text {
        "" => Ok(0),
        text => text.parse().ok().filter(|size| *size <= MAX_WIDTH).ok_or(format!("{text}: column too wide")),
    };
    let width: usize = size(width)?;
    let cut: String = match precision {
        Some(precision) if matches!(kind, Some('s' | 'b')) => value.chars().take(size(precision)?).collect(),
        _ => value.to_owned(),
    };
    let fill = width.saturating_sub(cut.chars().count());
    let is_number = matches!(kind, Some('d' | 'i' | 'u' | 'x' | 'o'));
    match () {
        () if flags.contains('-') => text.extend([cut.as_str(), &" ".repeat(fill)]),
        () if flags.contains('0') && is_number => {
            let digits = cut.strip_prefix('-');
            let sign = if digits.is_some() { "-" } else { "" };
            text.extend([sign, &"0".repeat(fill), digits.unwrap_or(&cut)]);
        }
        () => text.extend([" ".repeat(fill).as_str(), &cut]),
    }
    Ok(())
}

/// `seq [FIRST [STEP]] LAST`
pub(super) fn seq(call: &mut Call<'_>) -> Result<u8, Halt> {
    let mut numbers = Vec::new();
    for argument in call.arguments {
        match argument.parse::<i64>() {
            Ok(number) => numbers.push(number),
            Err(_) => return call.fail(1, &format!("invalid integer argument: ‘{argument}’")),
        }
    }
    let (first, step, last) = match numbers.as_slice() {
        [last] => (1, 1, *last),
        [first, last] => (*first, 1, *last),
        [first, step, last] if *step != 0 => (*first, *step, *last),
        _ => return call.fail(1, "one to three numbers are expected, and no step of 0"),
    };
    let mut at = first;
    while (step > 0 && at <= last) || (step < 0 && at >= last) {
        call.shell.pay(32)?;
        call.say(&format!("{at}\n"))?;
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters() {
        for (text, expected) in [
            ("a\\nb\\t\\\\", "a\nb\t\\"),
            ("\\x41\\0101\\q\\", "AA\\q\\"),
            ("a\\cb", "a"),
            ("\\xzz", "\\xzz"),
        ] {
            assert_eq!(unescape(text).0, expected, "{text}");
        }
    }

    #[test]
    fn columns_are_filled() {
        let check = |format: &str, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
            let mut text = String::new();
            formatted(format, &mut arguments.as_slice(), &mut text).map(|()| text)
        };
        assert_eq!(
            check("%-5s|%5d|%05d|%.2s|%%|%x", &["ab", "7", "-7", "abc", "255"]).unwrap(),
            "ab   |    7|-0007|ab|%|ff"
        );
        assert_eq!(check("%s-%d", &[]).unwrap(), "-0");
        assert!(check("%d", &["x"]).is_err() && check("%y", &[]).is_err() && check("%", &[]).is_err());
        assert!(check("%99999999s", &["x"]).is_err());
    }
}
