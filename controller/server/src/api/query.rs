//! Queries: typed values, with errors that name the key and the problem.

use std::{fmt::Display, str::FromStr};

use periapt_host_api::Refusal;

/// The pairs of a query. Reading a key takes its pairs; pairs that are left at the end are an error.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Splits a query and decodes its escapes.
    pub(crate) fn parse(text: Option<&str>) -> Result<Self, Refusal> {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((unescaped(key)?, unescaped(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// Takes all values of a key.
    pub(crate) fn all<T: FromStr<Err: Display>>(&mut self, key: &str) -> Result<Vec<T>, Refusal> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(name, _)| name == key);
        self.0 = left;
        let taken: Vec<(String, String)> = taken;
        taken
            .into_iter()
            .map(|(_, value)| {
                value.parse().map_err(|error| Refusal::bad_request(format!("query {key}={value}: {error}")))
            })
            .collect()
    }

    /// Takes the value of a key that may be given once.
    pub(crate) fn one<T: FromStr<Err: Display>>(&mut self, key: &str) -> Result<Option<T>, Refusal> {
        let mut values = self.all(key)?.into_iter();
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Refusal::bad_request(format!("query parameter {key} is given twice"))),
            (value, None) => Ok(value),
        }
    }

    /// Takes a truth value; `key` without a value is true.
    pub(crate) fn flag(&mut self, key: &str) -> Result<bool, Refusal> {
        match self.one::<String>(key)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(other) => Err(Refusal::bad_request(format!("query {key}={other}: true or false expected"))),
        }
    }

    /// Refuses keys that were not taken.
    pub(crate) fn end(self) -> Result<(), Refusal> {
        match self.0.first() {
            None => Ok(()),
            Some((key, _)) => Err(Refusal::bad_request(format!("unknown query parameter {key:?}"))),
        }
    }
}

fn unescaped(text: &str) -> Result<String, Refusal> {
    let wrong = || Refusal::bad_request(format!("query {text:?} is not percent-encoded correctly"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |digit: Option<u8>| char::from(digit?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let code = high.zip(low).map(|(high, low)| high * 16 + low);
                code.and_then(|code| u8::try_from(code).ok()).ok_or_else(wrong)?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_type_and_escapes_taken_back() {
        let mut query =
            Query::parse(Some("tail=5&include=mysql%2F0&include=a+b&follow&replay=false")).unwrap();
        assert_eq!(query.one::<u32>("tail"), Ok(Some(5)));
        assert_eq!(query.all::<String>("include"), Ok(vec!["mysql/0".into(), "a b".into()]));
        assert_eq!((query.flag("follow"), query.flag("replay")), (Ok(true), Ok(false)));
        assert_eq!(query.one::<u32>("absent"), Ok(None));
        assert_eq!(query.end(), Ok(()));
    }

    #[test]
    fn each_mistake_is_named() {
        let read = |text: &str| {
            let mut query = Query::parse(Some(text))?;
            query.one::<u32>("tail")?;
            query.end()
        };
        for (text, message) in [
            ("tail=x", "query tail=x: invalid digit found in string"),
            ("tail=1&tail=2", "query parameter tail is given twice"),
            ("tial=1", "unknown query parameter \"tial\""),
            ("tail=%f", "query \"%f\" is not percent-encoded correctly"),
            ("tail=%ff", "query \"%ff\" is not percent-encoded correctly"),
        ] {
            assert_eq!(read(text).unwrap_err().message, message);
        }
    }
}
