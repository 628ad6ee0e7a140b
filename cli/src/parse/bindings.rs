//! Bindings of endpoints to spaces on a command line.

use periapt_host_api::{SpaceName, network::Bindings};

use crate::error::{Failure, Result};

/// Parses `SPACE` and `ENDPOINT=SPACE`, as `bind` and `deploy --bind` take them.
pub(crate) fn parse(words: &[String]) -> Result<Bindings> {
    let mut bindings = Bindings::default();
    let space = |text: &str| SpaceName::new(text).map_err(|error| Failure::new(error.to_string()));
    for word in words.iter().flat_map(|words| words.split_whitespace()) {
        let before = match word.split_once('=') {
            Some((endpoint, name)) => bindings.endpoints.insert(endpoint.to_owned(), space(name)?),
            None => bindings.default.replace(space(word)?),
        };
        if before.is_some() {
            return Err(Failure::new(format!("{word:?} binds what was bound before it")));
        }
    }
    Ok(bindings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], default: Option<&str>, endpoints: &[(&str, &str)]) {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let read = parse(&words).unwrap();
        assert_eq!(read.default.as_ref().map(SpaceName::as_str), default);
        assert!(
            read.endpoints
                .iter()
                .map(|(name, space)| (name.as_str(), space.as_str()))
                .eq(endpoints.iter().copied())
        );
    }

    #[test]
    fn bindings_are_words_or_one_text_of_words() {
        check(&["internal", "db=public"], Some("internal"), &[("db", "public")]);
        check(&["internal db=public web=dmz"], Some("internal"), &[("db", "public"), ("web", "dmz")]);
        for twice in ["a b", "db=a db=b", "db=A"] {
            assert!(parse(&[twice.to_owned()]).is_err(), "{twice}");
        }
    }
}
