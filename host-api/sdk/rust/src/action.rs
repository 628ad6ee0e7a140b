//! The running action: its parameters, results and messages.

use crate::{ActionEvent, Error, Result, host};
use std::fmt::Display;

/// A type of an action's parameter.
pub trait FromParam: Sized {
    /// The expected value, for error messages.
    const EXPECTED: &'static str;

    /// Converts JSON text; `None` stands for an absent parameter. Returns `None` if the text is not of this type.
    fn from_json(json: Option<&str>) -> Option<Self>;
}

impl FromParam for String {
    const EXPECTED: &'static str = "a text";
    fn from_json(json: Option<&str>) -> Option<Self> {
        text(json?)
    }
}

impl FromParam for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_json(json: Option<&str>) -> Option<Self> {
        json?.parse().ok()
    }
}

macro_rules! integers {
    ($($type:ty => $expected:literal),* $(,)?) => {$(
        impl FromParam for $type {
            const EXPECTED: &'static str = $expected;
            fn from_json(json: Option<&str>) -> Option<Self> {
                json?.parse().ok()
            }
        }
    )*};
}

integers! {
    i64 => "a whole number",
    u64 => "a whole number, 0 or more",
    u32 => "a whole number from 0 to 4294967295",
    u16 => "a whole number from 0 to 65535",
}

impl FromParam for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_json(json: Option<&str>) -> Option<Self> {
        json.filter(|json| json.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']))?
            .parse()
            .ok()
    }
}

/// Converts an absent parameter or null to `None`.
impl<T: FromParam> FromParam for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn from_json(json: Option<&str>) -> Option<Self> {
        match json {
            None | Some("null") => Some(None),
            json => T::from_json(json).map(Some),
        }
    }
}

impl ActionEvent {
    /// Returns one parameter, or a part of it by its path through objects (`target.dir`); defaults are filled in.
    ///
    /// # Errors
    ///
    /// When it is of another type, or absent where the type is no `Option`.
    pub fn param<T: FromParam>(&self, path: &str) -> Result<T> {
        let json = host::actions::param(path).map_err(Error::refused)?;
        T::from_json(json.as_deref()).ok_or_else(|| {
            let found = json.as_deref().unwrap_or("nothing");
            Error::new(format!("parameter {path}: {} expected, not {found}", T::EXPECTED))
        })
    }

    /// Returns all parameters as JSON text of an object, for charms with their own JSON parser.
    ///
    /// # Errors
    ///
    /// When no action runs.
    pub fn params_json(&self) -> Result<String> {
        host::actions::params().map_err(Error::refused)
    }

    /// Sets a result. A dotted key leads into objects, and a later value replaces an earlier one.
    ///
    /// # Errors
    ///
    /// When the key has other than lower-case letters, digits and inner dashes between its dots, is one of the host's
    /// own (`stdout`, `stderr`), or the results are too large.
    pub fn set(&self, key: &str, value: impl Display) -> Result {
        self.set_all([(key, value)])
    }

    /// Sets several results, all of them or none.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_all<K: Into<String>, V: Display>(&self, results: impl IntoIterator<Item = (K, V)>) -> Result {
        let results: Vec<(String, String)> =
            results.into_iter().map(|(key, value)| (key.into(), value.to_string())).collect();
        host::actions::set_results(&results).map_err(Error::refused)
    }

    /// Sends a progress message at once to the operator who waits for the action.
    ///
    /// # Errors
    ///
    /// When the message is too long, or there were too many.
    pub fn log(&self, message: impl Display) -> Result {
        host::actions::log(&message.to_string()).map_err(Error::refused)
    }

    /// Marks the action as failed, and keeps the hook's effects: only an `Err` from the handler undoes them. The last
    /// message counts.
    ///
    /// # Errors
    ///
    /// When no action runs.
    pub fn fail(&self, message: impl Display) -> Result {
        host::actions::fail(Some(&message.to_string())).map_err(Error::refused)
    }
}

/// Parses a JSON string.
fn text(json: &str) -> Option<String> {
    let mut letters = json.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut units: Vec<u16> = Vec::new();
    let mut read = String::new();
    loop {
        let letter = letters.next();
        let unit = match letter {
            Some('\\') => match letters.next()? {
                'u' => {
                    let digits: String = letters.by_ref().take(4).collect();
                    let whole = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                    u16::from_str_radix(&digits, 16).ok().filter(|_| whole)?
                }
                'n' => u16::from(b'\n'),
                'r' => u16::from(b'\r'),
                't' => u16::from(b'\t'),
                'b' => 8,
                'f' => 12,
                other @ ('"' | '\\' | '/') => other as u16,
                _ => return None,
            },
            other => {
                // Surrogate pairs stand in sequence.
                read.push_str(&String::from_utf16_lossy(&std::mem::take(&mut units)));
                match other {
                    Some(letter) => read.push(letter),
                    None => return Some(read),
                }
                continue;
            }
        };
        units.push(unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_with_their_escapes() {
        assert_eq!(
            text(r#""a \"b\"\n\u00e9 \ud83d\ude00 é/\/""#).as_deref(),
            Some("a \"b\"\n\u{e9} \u{1f600} é//")
        );
        for bad in ["", "\"", "1", r#""\x""#, r#""\u12""#] {
            assert_eq!(text(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_parameter_is_read_by_its_type_or_not_at_all() {
        assert_eq!(i64::from_json(Some("3")), Some(3));
        assert_eq!((u16::from_json(Some("-1")), u16::from_json(Some("65536"))), (None, None));
        assert_eq!(f64::from_json(Some("-1.5e3")), Some(-1500.0));
        assert_eq!(f64::from_json(Some("inf")), None);
        assert_eq!(bool::from_json(Some("\"true\"")), None);
        assert_eq!(String::from_json(None), None);
        assert_eq!(Option::<i64>::from_json(None), Some(None));
        assert_eq!(Option::<i64>::from_json(Some("\"x\"")), None);
    }
}
