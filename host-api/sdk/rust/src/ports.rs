//! Ports of a unit.

use crate::bindings::periapt::charm::ports as wit;
use crate::{Error, Result};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A port, a range of ports, or ICMP.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ports {
    /// Ports of TCP, both ends included.
    Tcp(u16, u16),
    /// Ports of UDP, both ends included.
    Udp(u16, u16),
    /// ICMP, such as pings.
    Icmp,
}

/// Open ports, and the endpoints that they are open for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedPorts {
    /// The ports.
    pub ports: Ports,
    /// The endpoints; empty means all of them.
    pub endpoints: Vec<String>,
}

impl Ports {
    /// Returns one TCP port.
    pub fn tcp(port: u16) -> Self {
        Self::Tcp(port, port)
    }

    /// Returns one UDP port.
    pub fn udp(port: u16) -> Self {
        Self::Udp(port, port)
    }

    pub(crate) fn to_wit(&self) -> wit::Ports {
        match *self {
            Self::Tcp(first, last) => wit::Ports::Tcp(wit::PortRange { first, last }),
            Self::Udp(first, last) => wit::Ports::Udp(wit::PortRange { first, last }),
            Self::Icmp => wit::Ports::Icmp,
        }
    }

    pub(crate) fn from_wit(ports: &wit::Ports) -> Self {
        match ports {
            wit::Ports::Tcp(range) => Self::Tcp(range.first, range.last),
            wit::Ports::Udp(range) => Self::Udp(range.first, range.last),
            wit::Ports::Icmp => Self::Icmp,
        }
    }
}

impl From<u16> for Ports {
    fn from(port: u16) -> Self {
        Self::tcp(port)
    }
}

impl From<RangeInclusive<u16>> for Ports {
    fn from(range: RangeInclusive<u16>) -> Self {
        Self::Tcp(*range.start(), *range.end())
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last, protocol) = match self {
            Self::Tcp(first, last) => (first, last, "tcp"),
            Self::Udp(first, last) => (first, last, "udp"),
            Self::Icmp => return f.write_str("icmp"),
        };
        if first == last { write!(f, "{first}/{protocol}") } else { write!(f, "{first}-{last}/{protocol}") }
    }
}

/// Parses `80`, `53/udp`, `8000-8999/tcp`, `icmp`.
impl FromStr for Ports {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid =
            || Error::new(format!("\"{text}\" is no port, such as 80, 53/udp, 8000-8999/tcp or icmp"));
        if text == "icmp" {
            return Ok(Self::Icmp);
        }
        let (range, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.parse().map_err(|_| invalid())?;
        let last = last.parse().map_err(|_| invalid())?;
        match protocol {
            "tcp" => Ok(Self::Tcp(first, last)),
            "udp" => Ok(Self::Udp(first, last)),
            _ => Err(invalid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_read_back_what_they_print() {
        for text in ["80/tcp", "53/udp", "8000-8999/tcp", "icmp"] {
            assert_eq!(text.parse::<Ports>().unwrap().to_string(), text);
        }
        assert_eq!("80".parse::<Ports>().unwrap(), Ports::tcp(80));
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["", "http", "80/sctp", "1-2-3", "70000"] {
            let error = text.parse::<Ports>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("\"{text}\" is no port")), "{error}");
        }
    }
}
