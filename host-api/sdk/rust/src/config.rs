//! The application's settings, with types.

use crate::{Error, Result, host};

/// The value of one option.
pub use crate::bindings::periapt::charm::config::Value;

/// The application's settings as they were when the hook began.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    _within_a_hook: (),
}

/// A charm's settings as a struct of its own.
///
/// See the crate's example. Operators can correct such errors, so charms often turn them into a blocked status.
pub trait FromConfig: Sized {
    /// Reads the settings, option by option.
    ///
    /// # Errors
    ///
    /// When an option is unset, or its value makes no sense.
    fn from_config(config: &Config) -> Result<Self>;
}

/// A type of an option.
pub trait FromOption: Sized {
    /// The expected value, for error messages.
    const EXPECTED: &'static str;

    /// Converts a value. Returns `None` if it has another type or is out of range.
    fn from_option(value: Value) -> Option<Self>;

    /// Returns the value of an unset option, or `None` if the option must be set.
    fn unset() -> Option<Self> {
        None
    }
}

impl Config {
    pub(crate) fn new() -> Self {
        Self { _within_a_hook: () }
    }

    /// Returns one option. The type `Option<T>` is for options that may be unset.
    ///
    /// # Errors
    ///
    /// When it is unset, or its value does not fit the type.
    pub fn get<T: FromOption>(&self, key: &str) -> Result<T> {
        let Some(value) = host::config::get(key) else {
            return T::unset().ok_or_else(|| Error::new(format!("option {key} is not set")));
        };
        let shown = show(&value);
        T::from_option(value)
            .ok_or_else(|| Error::new(format!("option {key} is {shown}, expected {}", T::EXPECTED)))
    }

    /// Returns every option that has a value, by name.
    pub fn all(&self) -> Vec<(String, Value)> {
        host::config::get_all()
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Secret(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Boolean(boolean) => boolean.to_string(),
    }
}

impl FromOption for Value {
    const EXPECTED: &'static str = "any value";
    fn from_option(value: Value) -> Option<Self> {
        Some(value)
    }
}

impl FromOption for String {
    const EXPECTED: &'static str = "a text";
    fn from_option(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) | Value::Secret(text) => Some(text),
            _ => None,
        }
    }
}

impl FromOption for bool {
    const EXPECTED: &'static str = "true or false";
    fn from_option(value: Value) -> Option<Self> {
        match value {
            Value::Boolean(boolean) => Some(boolean),
            _ => None,
        }
    }
}

impl FromOption for f64 {
    const EXPECTED: &'static str = "a number";
    fn from_option(value: Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }
}

impl<T: FromOption> FromOption for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    fn from_option(value: Value) -> Option<Self> {
        T::from_option(value).map(Some)
    }
    fn unset() -> Option<Self> {
        Some(None)
    }
}

macro_rules! integers {
    ($($type:ty => $expected:literal),* $(,)?) => {$(
        impl FromOption for $type {
            const EXPECTED: &'static str = $expected;
            fn from_option(value: Value) -> Option<Self> {
                match value {
                    Value::Integer(number) => number.try_into().ok(),
                    _ => None,
                }
            }
        }
    )*};
}

integers! {
    i64 => "a whole number",
    i32 => "a whole number of 32 bits",
    u64 => "a whole number, 0 or more",
    u32 => "a whole number from 0 to 4294967295",
    u16 => "a whole number from 0 to 65535",
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Self::Boolean(boolean)
    }
}
