//! A request for a certificate, in the bag of the requesting unit.

use periapt_sdk::{Bag, Context, Error, Result};
use std::net::IpAddr;
use x509_cert::der::asn1::Ia5String;
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames};

/// The longest name in a certificate, in bytes.
const LONGEST: usize = 64;

/// The most names in one certificate.
const MOST: usize = 32;

/// A server's names, each a DNS name or an IP address. The first is the common name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request(Vec<String>);

impl Request {
    /// Reads a unit's request. Returns `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the request is invalid. The text is for the requesting unit's operator.
    pub(crate) fn of(bag: &Bag) -> Result<Option<Self>> {
        let Some(common_name) = bag.get::<String>("common_name")? else { return Ok(None) };
        let sans: Vec<String> = match bag.get::<String>("sans")? {
            Some(json) => serde_json::from_str(&json).context("sans is no list of texts in JSON")?,
            None => Vec::new(),
        };
        Self::new(&common_name, &sans).map(Some)
    }

    pub(crate) fn new(common_name: &str, sans: &[String]) -> Result<Self> {
        let mut names = vec![common_name.to_owned()];
        for name in sans {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.len() > MOST {
            return Err(Error::new(format!(
                "{} names are too many for a certificate, at most {MOST}",
                names.len()
            )));
        }
        match names.iter().find(|name| !is_name(name)) {
            Some(name) => {
                let shown: String = name.chars().take(LONGEST).collect();
                Err(Error::new(format!("\"{shown}\" is neither a DNS name nor an IP address")))
            }
            None => Ok(Self(names)),
        }
    }

    pub(crate) fn common_name(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Returns the names as text.
    pub(crate) fn text(&self) -> String {
        self.0.join(",")
    }

    pub(crate) fn general_names(&self) -> Result<GeneralNames> {
        self.0.iter().map(|name| general_name(name)).collect()
    }
}

fn general_name(name: &str) -> Result<GeneralName> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(address.into()),
        Err(_) => Ok(GeneralName::DnsName(Ia5String::new(name).context(format!("the name {name}"))?)),
    }
}

/// Checks a requested name, which becomes part of a signed certificate: no character may end it and begin another
/// part.
fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let host = text.strip_prefix("*.").unwrap_or(text);
    text.parse::<IpAddr>().is_ok() || text.len() <= LONGEST && host.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(common_name: &str, sans: &[&str]) -> Result<String, String> {
        let sans: Vec<_> = sans.iter().map(|&name| name.to_owned()).collect();
        Request::new(common_name, &sans).map(|request| request.text()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_for_hosts_and_each_once() {
        assert_eq!(names("blog-0", &["10.0.0.1", "blog-0", "::1"]).unwrap(), "blog-0,10.0.0.1,::1");
        assert_eq!(names("*.example.com", &[]).unwrap(), "*.example.com");
    }

    #[test]
    fn what_would_be_more_than_a_name_is_refused() {
        for wrong in
            ["", "a b", "x,O=Bank", "a+b", "-a", "a..b", "*", "a.*.b", "wordpress/0", &"a".repeat(65)]
        {
            assert!(
                names(wrong, &[]).unwrap_err().ends_with("neither a DNS name nor an IP address"),
                "{wrong}"
            );
        }
        let many: Vec<_> = (0..40).map(|number| format!("n{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(names("a", &many).unwrap_err(), "41 names are too many for a certificate, at most 32");
    }

    #[test]
    fn addresses_and_names_are_told_apart() {
        let request = Request::new("blog", &["10.0.0.1".to_owned()]).unwrap();
        let kinds = request.general_names().unwrap();
        assert!(matches!(kinds[..], [GeneralName::DnsName(_), GeneralName::IpAddress(_)]));
    }
}
