//! The locations of log targets.

use core::net::Ipv6Addr;

use periapt_host_api::pod::MAX_HOST_BYTES;

/// The most bytes of a location.
const MAX_LOCATION: usize = 2 << 10;

/// The characters of a wrong location that an error has.
const SHOWN: usize = 100;

/// The protocol of a log target's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogPushScheme {
    /// HTTP without encryption.
    Http,
    /// HTTP by TLS.
    Https,
}

impl LogPushScheme {
    fn read(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Returns the port of locations that name none.
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The place that lines are sent to, read from a location of the form `http[s]://HOST[:PORT][/PATH]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPushLocation {
    /// The protocol.
    pub scheme: LogPushScheme,
    /// The host, a name or an address without brackets.
    pub host: String,
    /// The port; never 0.
    pub port: u16,
    /// The host and the port as the location has them.
    pub authority: String,
    /// The path with the query; it begins with `/`.
    pub path: String,
}

impl LogPushLocation {
    /// Reads a location. The error is in words.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            let shown: String = text.chars().take(SHOWN).collect();
            Err(format!("its location {shown:?} {why}"))
        };
        if text.len() > MAX_LOCATION {
            return wrong(&format!("is longer than {MAX_LOCATION} bytes"));
        }
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let Some(scheme) = LogPushScheme::read(scheme) else {
            return wrong("is no URL that begins with http:// or https://");
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let Some((host, port)) = host_and_port(authority, scheme) else {
            return wrong("does not name a host, and a port from 1 to 65535 if there is one");
        };
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            return wrong("has a path with spaces, with # or with letters that are not ASCII");
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, host: host.to_owned(), port, authority: authority.to_owned(), path })
    }
}

fn host_and_port(authority: &str, scheme: LogPushScheme) -> Option<(&str, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(inside) => {
            let (host, port) = inside.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if host.is_empty() || host.len() > MAX_HOST_BYTES || !host.bytes().all(is_known) {
                return None;
            }
            (host, port)
        }
    };
    let port = match port {
        None => scheme.port(),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
    };
    (port != 0).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_location_is_a_host_a_port_and_a_path() {
        for (text, host, port, authority, path) in [
            ("http://loki-0:3100/loki/api/v1/push", "loki-0", 3_100, "loki-0:3100", "/loki/api/v1/push"),
            ("HTTP://10.1.2.3", "10.1.2.3", 80, "10.1.2.3", "/"),
            ("https://loki-0/push", "loki-0", 443, "loki-0", "/push"),
            ("Https://[fd00::1]:3100", "fd00::1", 3_100, "[fd00::1]:3100", "/"),
            ("http://h?x=1", "h", 80, "h", "/?x=1"),
            ("http://[fd00::1]:80/a", "fd00::1", 80, "[fd00::1]:80", "/a"),
            ("http://[::1]", "::1", 80, "[::1]", "/"),
        ] {
            let read = LogPushLocation::read(text).unwrap();
            assert_eq!(
                read.scheme == LogPushScheme::Https,
                text.to_lowercase().starts_with("https"),
                "{text}"
            );
            let read = (read.host.as_str(), read.port, read.authority.as_str(), read.path.as_str());
            assert_eq!(read, (host, port, authority, path), "{text}");
        }
    }

    #[test]
    fn the_error_says_what_is_wrong_with_a_location() {
        for (text, part) in [
            ("", "no URL that begins with http:// or https://"),
            ("httpss://h", "no URL"),
            ("://h", "no URL"),
            ("x", "no URL"),
            ("tcp://h:514", "no URL"),
            ("http:/h", "no URL"),
            ("http://", "does not name a host"),
            ("http:///path", "does not name a host"),
            ("http://user:word@h/", "does not name a host"),
            ("http://h:", "does not name a host"),
            ("http://h:0", "a port from 1 to 65535"),
            ("http://h:+1", "a port"),
            ("http://h:65536", "a port"),
            ("http://h:1:2", "a port"),
            ("http://[::1", "does not name a host"),
            ("http://[::1]80", "does not name a host"),
            ("http://[h]", "does not name a host"),
            ("http://h\u{e9}", "does not name a host"),
            ("http://h/a b", "has a path with"),
            ("http://h/#a", "has a path with"),
            ("http://h/\r\nX: y", "has a path with"),
            (&format!("http://{}/", "h".repeat(254)), "does not name a host"),
            (&format!("http://h/{}", "p".repeat(2_048)), "longer than 2048 bytes"),
        ] {
            let error = LogPushLocation::read(text).unwrap_err();
            assert!(error.contains(part) && error.len() < 1_000, "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_location_panics(text in "(https?://)?[a-z0-9:/?#@.\\[\\]é -]{0,40}") {
            if let Ok(read) = LogPushLocation::read(&text) {
                prop_assert!(read.port != 0 && read.path.starts_with('/') && !read.host.is_empty());
            }
        }
    }
}
