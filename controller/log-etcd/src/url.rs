//! The place of a log, as operators write it: `etcd://H1:2379,H2:2379,H3:2379/prefix`.

use std::{fmt, str::FromStr};

use http::uri::Authority;

/// The port that etcd serves clients on, unless told otherwise.
const PORT: u16 = 2379;

/// The prefix of keys, unless the URL has another.
const PREFIX: &str = "periapt";

/// The most endpoints. A cluster has three or five members.
const MAX_ENDPOINTS: usize = 16;

/// The most bytes of a prefix, which stands in each key.
const MAX_PREFIX: usize = 200;

/// The place of a log in etcd: the members of the cluster, and the prefix of the log's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdUrl {
    /// The endpoints, each as `HOST:PORT`.
    pub endpoints: Vec<String>,
    /// The prefix of all keys, without a slash at its end.
    pub prefix: String,
    /// The kind of connections, if no certificates are given.
    pub encryption: Encryption,
}

/// The kind of connections to etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// No encryption: `etcd://`.
    Plain,
    /// TLS: `etcds://`.
    Tls,
}

/// The reason why a text is no [`EtcdUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EtcdUrlError {
    /// Another scheme, or none.
    #[error("{0:?} is no place of a log: it must be etcd://HOST:PORT,.../PREFIX, or etcds:// for TLS")]
    Scheme(String),
    /// No endpoint.
    #[error("the URL of etcd names no endpoint: etcd://H1:2379,H2:2379,H3:2379 is right")]
    NoEndpoint,
    /// Too many endpoints.
    #[error("the URL of etcd names {0} endpoints; at most {MAX_ENDPOINTS} are allowed")]
    TooManyEndpoints(usize),
    /// An endpoint that is none.
    #[error("{endpoint:?} is no endpoint of etcd: {reason}; HOST:PORT is right")]
    Endpoint {
        /// The text.
        endpoint: String,
        /// The defect.
        reason: String,
    },
    /// An endpoint that is named twice.
    #[error("the URL of etcd names the endpoint {0} twice")]
    Twice(String),
    /// A prefix that is none.
    #[error(
        "{0:?} is no prefix of keys: names of letters, digits, '.', '_' and '-' with '/' between them are right, \
         {MAX_PREFIX} bytes at most"
    )]
    Prefix(String),
}

impl FromStr for EtcdUrl {
    type Err = EtcdUrlError;

    fn from_str(text: &str) -> Result<Self, EtcdUrlError> {
        let (encryption, rest) = if let Some(rest) = text.strip_prefix("etcd://") {
            (Encryption::Plain, rest)
        } else if let Some(rest) = text.strip_prefix("etcds://") {
            (Encryption::Tls, rest)
        } else {
            return Err(EtcdUrlError::Scheme(text.to_owned()));
        };
        let (hosts, prefix) = match rest.split_once('/') {
            Some((hosts, prefix)) => (hosts, prefix.strip_suffix('/').unwrap_or(prefix)),
            None => (rest, ""),
        };
        if hosts.is_empty() {
            return Err(EtcdUrlError::NoEndpoint);
        }
        let count = hosts.split(',').count();
        if count > MAX_ENDPOINTS {
            return Err(EtcdUrlError::TooManyEndpoints(count));
        }
        let mut endpoints = Vec::with_capacity(count);
        for endpoint in hosts.split(',').map(parse_endpoint) {
            let endpoint = endpoint?;
            if endpoints.contains(&endpoint) {
                return Err(EtcdUrlError::Twice(endpoint));
            }
            endpoints.push(endpoint);
        }
        let prefix = parse_prefix(if prefix.is_empty() { PREFIX } else { prefix })?;
        Ok(Self { endpoints, prefix, encryption })
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.encryption {
            Encryption::Plain => "etcd",
            Encryption::Tls => "etcds",
        };
        write!(f, "{scheme}://{}/{}", self.endpoints.join(","), self.prefix)
    }
}

fn parse_endpoint(text: &str) -> Result<String, EtcdUrlError> {
    let wrong =
        |reason: &str| EtcdUrlError::Endpoint { endpoint: text.to_owned(), reason: reason.to_owned() };
    if text.is_empty() {
        return Err(wrong("it is empty"));
    }
    if text.contains('@') {
        return Err(wrong("a user is not part of it; etcd knows a controller by its certificate"));
    }
    let authority: Authority = text.parse().map_err(|_| wrong("it has characters that no host has"))?;
    if authority.host().is_empty() {
        return Err(wrong("it has no host"));
    }
    let rest = text.strip_prefix(authority.host()).unwrap_or_default();
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(wrong("its port is no number from 1 to 65535")),
        },
        None => return Err(wrong("an IPv6 address stands in brackets")),
    };
    Ok(format!("{}:{port}", authority.host().to_ascii_lowercase()))
}

fn parse_prefix(text: &str) -> Result<String, EtcdUrlError> {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    if text.len() > MAX_PREFIX || !text.split('/').all(is_name) {
        return Err(EtcdUrlError::Prefix(text.to_owned()));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_cluster_is_read_and_written() {
        for (text, written) in [
            ("etcd://a", "etcd://a:2379/periapt"),
            ("etcd://A:1,b:2,[::1]:3/one/two/", "etcd://a:1,b:2,[::1]:3/one/two"),
            ("etcds://10.0.0.1/", "etcds://10.0.0.1:2379/periapt"),
            ("etcd://[fe80::1]", "etcd://[fe80::1]:2379/periapt"),
        ] {
            let url: EtcdUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), written);
            assert_eq!(written.parse(), Ok(url));
        }
    }

    #[test]
    fn a_text_that_is_no_url_of_etcd_says_why() {
        for (text, expected) in [
            ("http://a:1", "must be etcd://"),
            ("a:1", "must be etcd://"),
            ("etcd://", "no endpoint"),
            ("etcd:///p", "no endpoint"),
            ("etcd://a,,b", "it is empty"),
            ("etcd://a:0", "1 to 65535"),
            ("etcd://a:70000", "1 to 65535"),
            ("etcd://a:", "1 to 65535"),
            ("etcd://a b", "no host has"),
            ("etcd://::1", ""),
            ("etcd://root:secret@a", "certificate"),
            ("etcd://a,A:2379", "twice"),
            ("etcd://a/x//y", "no prefix"),
            ("etcd://a/x y", "no prefix"),
            ("etcd://a?x", ""),
        ] {
            let error = text.parse::<EtcdUrl>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let many = format!("etcd://{}", (0..17).map(|n| format!("h{n}")).collect::<Vec<_>>().join(","));
        assert_eq!(many.parse::<EtcdUrl>(), Err(EtcdUrlError::TooManyEndpoints(17)));
        let long = format!("etcd://a/{}", "x".repeat(201));
        assert!(matches!(long.parse::<EtcdUrl>(), Err(EtcdUrlError::Prefix(_))));
    }
}
