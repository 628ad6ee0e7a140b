//! The names by which clients call a server.

use std::{fmt, net::IpAddr, str::FromStr};

use rustls::pki_types::ServerName;

/// A name by which clients call a server: a DNS name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicName(ServerName<'static>);

/// A text that is neither a DNS name nor an IP address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither a DNS name nor an IP address; without a scheme and a port, as node-1.example")]
pub struct PublicNameError(String);

impl PublicName {
    /// Returns the names of the host that a server runs on, by which processes on it call it.
    pub fn of_this_host() -> Vec<Self> {
        ["localhost", "127.0.0.1", "::1"].into_iter().filter_map(|name| name.parse().ok()).collect()
    }

    /// Returns the name as it stands in a URL.
    pub fn in_url(&self) -> String {
        match self.ip() {
            Some(IpAddr::V6(address)) => format!("[{address}]"),
            _ => self.to_string(),
        }
    }

    /// Returns true for a DNS name, and false for an address.
    pub fn is_dns(&self) -> bool {
        self.ip().is_none()
    }

    pub(crate) fn server_name(&self) -> &ServerName<'static> {
        &self.0
    }

    /// Returns the address, unless the name is a DNS name.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match &self.0 {
            ServerName::IpAddress(address) => Some((*address).into()),
            _ => None,
        }
    }
}

impl From<IpAddr> for PublicName {
    fn from(address: IpAddr) -> Self {
        Self(ServerName::IpAddress(address.into()))
    }
}

impl FromStr for PublicName {
    type Err = PublicNameError;

    fn from_str(text: &str) -> Result<Self, PublicNameError> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        match ServerName::try_from(bare.to_owned()) {
            Ok(name) => Ok(Self(name)),
            Err(_) => Err(PublicNameError(text.chars().take(64).collect())),
        }
    }
}

impl fmt::Display for PublicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_dns_name_or_an_address_and_nothing_more() {
        for (text, in_url) in
            [("node-1.example", "node-1.example"), ("192.0.2.1", "192.0.2.1"), ("::1", "[::1]")]
        {
            assert_eq!(text.parse::<PublicName>().unwrap().in_url(), in_url);
        }
        assert_eq!("[::1]".parse::<PublicName>(), "::1".parse());
        for wrong in ["", "https://a", "a:17070", "a b", "-a"] {
            assert!(wrong.parse::<PublicName>().is_err(), "{wrong}");
        }
    }
}
