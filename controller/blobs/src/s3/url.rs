//! The place of blobs, and the server that has it.

use std::{fmt, str::FromStr};

use http::Uri;

use super::S3Error;

/// The longest prefix, in bytes. Names of objects have 1,024 at most.
const MAX_PREFIX: usize = 512;

/// A bucket and a prefix: `s3://BUCKET/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Url {
    bucket: String,
    prefix: String,
}

impl S3Url {
    /// Returns the bucket's name.
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// Returns the prefix of the objects' names, without a slash at its end; empty for a whole bucket.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for S3Url {
    type Err = S3Error;

    fn from_str(text: &str) -> Result<Self, S3Error> {
        let wrong = || S3Error::Url(text.to_owned());
        let place = text.strip_prefix("s3://").ok_or_else(wrong)?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
        let of_bucket = |letter: char| {
            letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '-' | '.')
        };
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(of_bucket) {
            return Err(wrong());
        }
        let of_prefix = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let is_plain = |part: &str| {
            !part.is_empty() && part.chars().all(of_prefix) && part.chars().any(|letter| letter != '.')
        };
        if prefix.len() > MAX_PREFIX || !(prefix.is_empty() || prefix.split('/').all(is_plain)) {
            return Err(wrong());
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for S3Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => write!(f, "s3://{}", self.bucket),
            prefix => write!(f, "s3://{}/{prefix}", self.bucket),
        }
    }
}

/// The URL of a server: `https://HOST:PORT`, or `http://` for one without TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Endpoint(String);

impl FromStr for S3Endpoint {
    type Err = S3Error;

    fn from_str(text: &str) -> Result<Self, S3Error> {
        // A password in a URL ends up in the list of processes.
        let shown = text.rsplit_once('@').map_or(text, |(_, host)| host);
        let wrong = || S3Error::Endpoint(shown.to_owned());
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let is_web = matches!(uri.scheme_str(), Some("https" | "http"));
        let has_host = uri.host().is_some_and(|host| !host.is_empty());
        let is_bare = uri.path() == "/" && uri.query().is_none() && shown == text;
        match is_web && has_host && is_bare {
            true => Ok(Self(text.trim_end_matches('/').to_owned())),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for S3Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_shown_and_others_are_refused() {
        for (text, bucket, prefix) in [
            ("s3://charms", "charms", ""),
            ("s3://charms/", "charms", ""),
            ("s3://my.bucket-1/a/B_c.d/", "my.bucket-1", "a/B_c.d"),
        ] {
            let url: S3Url = text.parse().unwrap();
            assert_eq!((url.bucket(), url.prefix()), (bucket, prefix));
            assert_eq!(url.to_string(), text.trim_end_matches('/'));
        }
        for bad in [
            "charms",
            "s3:/charms",
            "s3://ab",
            "s3://Charms",
            "s3://charms//a",
            "s3://charms/..",
            "s3://charms/a b",
        ] {
            assert!(bad.parse::<S3Url>().is_err(), "{bad}");
        }
    }

    #[test]
    fn servers_have_a_host_and_neither_path_nor_password() {
        for good in ["https://s3.example", "http://127.0.0.1:9000", "https://[::1]:9000/"] {
            assert_eq!(good.parse::<S3Endpoint>().unwrap().to_string(), good.trim_end_matches('/'));
        }
        for bad in [
            "s3.example",
            "ftp://s3.example",
            "https://s3.example/path",
            "https://s3.example?a=b",
            "https://",
        ] {
            assert!(bad.parse::<S3Endpoint>().is_err(), "{bad}");
        }
        let error = "https://user:pass@s3.example".parse::<S3Endpoint>().unwrap_err().to_string();
        assert!(!error.contains("pass"), "{error}");
    }
}
