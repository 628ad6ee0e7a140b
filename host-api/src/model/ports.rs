//! Port ranges, as charms open them (`docs/hook-model.md` 5.5).

use std::{collections::BTreeSet, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::EndpointName;

mod table;

pub use table::PortTable;

/// A transport with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP
    Tcp,
    /// UDP
    Udp,
}

impl Transport {
    /// Returns the name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A range of ports of one protocol, or ICMP. Sorts by protocol, first and last port. Written `80/tcp`,
/// `8000-8999/udp`, `icmp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PortRange(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Icmp,
    Tcp { first: u16, last: u16 },
    Udp { first: u16, last: u16 },
}

/// A text that is no port range. The messages are those of Juju's hook tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortRangeError {
    /// The first port is above the last.
    #[error("invalid port range {0}-{1}/{2}")]
    Reversed(i64, i64, &'static str),
    /// A port is outside of 0 to 65535.
    #[error("port range bounds must be between 0 and 65535, got {0}-{1}")]
    OutOfBounds(i64, i64),
    /// The text has no number where a port is expected.
    #[error("invalid port {0:?}")]
    NotANumber(String),
    /// The text is not of the form `A-B`.
    #[error("invalid port range {0:?}")]
    NotARange(String),
    /// The text gives ports for ICMP.
    #[error("protocol \"icmp\" doesn't support any ports; got {0:?}")]
    IcmpWithPorts(String),
    /// The protocol does not exist.
    #[error("invalid protocol {0:?}, expected \"tcp\", \"udp\", or \"icmp\"")]
    UnknownProtocol(String),
}

impl PortRange {
    /// All of ICMP.
    pub const ICMP: Self = Self(Kind::Icmp);

    /// Creates a range of ports, both ends included.
    pub fn new(transport: Transport, first: u16, last: u16) -> Result<Self, PortRangeError> {
        if first > last {
            return Err(PortRangeError::Reversed(first.into(), last.into(), transport.as_str()));
        }
        Ok(Self(match transport {
            Transport::Tcp => Kind::Tcp { first, last },
            Transport::Udp => Kind::Udp { first, last },
        }))
    }

    /// Returns the protocol, and the first and last port. Returns `None` for ICMP.
    pub fn ports(&self) -> Option<(Transport, u16, u16)> {
        match self.0 {
            Kind::Icmp => None,
            Kind::Tcp { first, last } => Some((Transport::Tcp, first, last)),
            Kind::Udp { first, last } => Some((Transport::Udp, first, last)),
        }
    }

    /// Returns the protocol's name in lower case.
    pub fn protocol(&self) -> &'static str {
        self.ports().map_or("icmp", |(transport, ..)| transport.as_str())
    }

    /// Returns true if the ranges have a port in common. ICMP overlaps with itself only.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self.ports(), other.ports()) {
            (None, None) => true,
            (Some((a, a_first, a_last)), Some((b, b_first, b_last))) => {
                a == b && a_first <= b_last && b_first <= a_last
            }
            _ => false,
        }
    }
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let (range, protocol) = match text.split_once('/') {
            Some((range, protocol)) => (Some(range), protocol.to_ascii_lowercase()),
            None if text.eq_ignore_ascii_case("icmp") => (None, "icmp".to_owned()),
            None => (Some(text), "tcp".to_owned()),
        };
        let transport = match protocol.as_str() {
            "tcp" => Transport::Tcp,
            "udp" => Transport::Udp,
            "icmp" => {
                return match range {
                    None | Some("") | Some("-1") => Ok(Self::ICMP),
                    Some(range) => Err(PortRangeError::IcmpWithPorts(range.to_owned())),
                };
            }
            _ => return Err(PortRangeError::UnknownProtocol(protocol)),
        };
        let range = range.unwrap_or_default();
        let number =
            |text: &str| text.parse::<i64>().map_err(|_| PortRangeError::NotANumber(text.to_owned()));
        let (first, last) = match range.split('-').collect::<Vec<_>>().as_slice() {
            [only] => (number(only)?, number(only)?),
            [first, last] => (number(first)?, number(last)?),
            _ => return Err(PortRangeError::NotARange(range.to_owned())),
        };
        if first > last {
            return Err(PortRangeError::Reversed(first, last, transport.as_str()));
        }
        match (u16::try_from(first), u16::try_from(last)) {
            (Ok(first), Ok(last)) => Self::new(transport, first, last),
            _ => Err(PortRangeError::OutOfBounds(first, last)),
        }
    }
}

impl TryFrom<String> for PortRange {
    type Error = PortRangeError;
    fn try_from(text: String) -> Result<Self, PortRangeError> {
        text.parse()
    }
}

impl From<PortRange> for String {
    fn from(range: PortRange) -> String {
        range.to_string()
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ports() {
            None => f.write_str("icmp"),
            Some((transport, first, last)) if first == last => write!(f, "{first}/{}", transport.as_str()),
            Some((transport, first, last)) => write!(f, "{first}-{last}/{}", transport.as_str()),
        }
    }
}

/// A range that a unit has open, and the endpoints that it is open for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OpenedPorts {
    /// The range.
    pub range: PortRange,
    /// The endpoints; empty means all of them.
    pub endpoints: BTreeSet<EndpointName>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written_as_charms_expect() {
        for (text, written) in [
            ("80", "80/tcp"),
            ("80/TCP", "80/tcp"),
            ("0", "0/tcp"),
            ("100-200/udp", "100-200/udp"),
            ("ICMP", "icmp"),
            ("icmp", "icmp"),
        ] {
            assert_eq!(text.parse::<PortRange>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn each_mistake_has_its_message() {
        for (text, message) in [
            ("80-20", "invalid port range 80-20/tcp"),
            ("70000", "port range bounds must be between 0 and 65535, got 70000-70000"),
            ("x", "invalid port \"x\""),
            ("1-2-3", "invalid port range \"1-2-3\""),
            ("80/icmp", "protocol \"icmp\" doesn't support any ports; got \"80\""),
            ("80/foo", "invalid protocol \"foo\", expected \"tcp\", \"udp\", or \"icmp\""),
        ] {
            assert_eq!(text.parse::<PortRange>().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn only_ranges_of_one_protocol_overlap() {
        let range = |text: &str| text.parse::<PortRange>().unwrap();
        assert!(range("100-200").overlaps(&range("200-300")));
        assert!(!range("100-199").overlaps(&range("200-300")));
        assert!(!range("100-200/udp").overlaps(&range("200-300/tcp")));
        assert!(!range("icmp").overlaps(&range("0-65535")));
    }
}
