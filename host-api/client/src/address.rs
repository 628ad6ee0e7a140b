//! The forms of a controller's URL.

use std::{fmt, path::PathBuf};

use http::{
    Uri,
    uri::{Authority, Scheme},
};
use periapt_host_api::api::MAX_ADDRESSES;

/// The place of a controller, as its URL tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// `https://HOST:PORT`: TLS.
    Tls(Authority),
    /// `unix:///PATH`: a socket on the controller's own host.
    Unix(PathBuf),
    /// `http://ADDRESS:PORT` on loopback: a controller in a process of tests.
    Plain(Authority),
}

/// The fault of a URL that no controller can have.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("{0}")]
    NotAUrl(String),
    #[error("it must start with https:// or unix:///")]
    Scheme,
    #[error("without TLS a controller is reached on its own machine only; use https://")]
    Plain,
    #[error("it must end after host and port")]
    Path,
    #[error("it names no host")]
    Host,
    #[error("it names no port")]
    Port,
    #[error("it names no absolute path, as unix:///run/periapt/control.socket does")]
    Socket,
    #[error("a URL is needed, such as https://node-1.example:17070")]
    Missing,
    #[error("it stands twice in the list")]
    Twice,
    #[error("several controllers are reached over https:// alone")]
    Alone,
    #[error("it is one too many: a list has at most {MAX_ADDRESSES} URLs")]
    TooMany,
}

impl Address {
    /// Reads a URL.
    pub(crate) fn parse(url: &str) -> Result<Self, UrlError> {
        if let Some(path) = url.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') && !path.contains('\0') {
                true => Ok(Self::Unix(path.into())),
                false => Err(UrlError::Socket),
            };
        }
        let uri: Uri =
            url.parse().map_err(|error: http::uri::InvalidUri| UrlError::NotAUrl(error.to_string()))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UrlError::Scheme),
        };
        if !matches!(uri.path_and_query().map(|path| path.as_str()), None | Some("/")) {
            return Err(UrlError::Path);
        }
        let authority = uri.authority().ok_or(UrlError::Host)?;
        if authority.port().is_none() {
            return Err(UrlError::Port);
        }
        match tls {
            true => Ok(Self::Tls(authority.clone())),
            false if is_loopback(authority.host()) => Ok(Self::Plain(authority.clone())),
            false => Err(UrlError::Plain),
        }
    }

    /// Returns the scheme of requests.
    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Self::Tls(_) => Scheme::HTTPS,
            Self::Unix(_) | Self::Plain(_) => Scheme::HTTP,
        }
    }

    /// Returns the authority of requests. A socket's is the machine's own name.
    pub(crate) fn authority(&self) -> Authority {
        match self {
            Self::Tls(authority) | Self::Plain(authority) => authority.clone(),
            Self::Unix(_) => Authority::from_static("localhost"),
        }
    }
}

/// Formats the URL.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(authority) => write!(f, "https://{authority}"),
            Self::Plain(authority) => write!(f, "http://{authority}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// Returns the name or address of an authority's host, without the brackets of an IPv6 address.
pub(crate) fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_loopback(host: &str) -> bool {
    let address = bare(host).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_in_a_url_is_named() {
        for (url, reason) in [
            ("127.0.0.1:1", "it must start with https://"),
            ("ftp://127.0.0.1:1", "it must start with https://"),
            ("http://192.0.2.1:1", "use https://"),
            ("https://127.0.0.1:1/v1", "it must end after host and port"),
            ("https://localhost", "it names no port"),
            ("unix://run/socket", "it names no absolute path"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }

    #[test]
    fn a_url_names_a_place_and_the_name_by_which_it_is_called() {
        let authority = |url| Address::parse(url).unwrap().authority().to_string();
        assert_eq!(authority("https://node-1.example:17070/"), "node-1.example:17070");
        assert_eq!(authority("http://[::1]:17070"), "[::1]:17070");
        for url in ["unix:/run/socket", "unix:///run/socket"] {
            assert_eq!(Address::parse(url).unwrap(), Address::Unix("/run/socket".into()));
            assert_eq!(authority(url), "localhost");
        }
    }
}
