//! Grants as operators write them.

use std::{fmt, str::FromStr};

use core::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ranges;
use crate::{network::Subnet, pod::MAX_HOST_BYTES};

/// The key of the setting, in models and in applications.
pub const WORKLOAD_EGRESS: &str = "workload-egress";

/// The most grants of a model, and of an application. Each connection is compared with all of them.
pub const MAX_EGRESS_GRANTS: usize = 64;

/// The form of a grant, for messages.
const FORM: &str = "write it as HOST, *.DOMAIN, ADDRESS or CIDR, with :PORT after it for one port alone; an IPv6 \
                    address with a port as [2001:db8::1]:443";

/// The destinations outside of a model that its workloads may connect to; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EgressGrants(Vec<EgressGrant>);

/// A granted destination: `example.com`, `*.example.com:443`, `203.0.113.7`, `203.0.113.0/24:5432` or
/// `[2001:db8::/32]:443`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct EgressGrant {
    to: Destination,
    /// The port; none: each one.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    /// A host by its name, in lower case.
    Host(String),
    /// The hosts below a domain.
    Below(String),
    Subnet(Subnet),
}

/// A text that is no grant, or too many of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EgressGrantError {
    /// A text that is no grant.
    #[error("invalid destination {text:?}: {reason}")]
    Invalid {
        /// The text, shortened.
        text: String,
        /// The reason, with the right form.
        reason: String,
    },
    /// Too many grants.
    #[error("{0} destinations, at most {MAX_EGRESS_GRANTS} are allowed")]
    TooMany(usize),
}

impl EgressGrants {
    /// Returns true if nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a name may be looked up for a connection to a port, or to any one: a grant has the name, or one has all
    /// addresses. A lookup tells the host's name servers, and those of the name's owner, what is asked.
    pub fn may_look_up(&self, name: &str, port: Option<u16>) -> bool {
        let Some(name) = asked(name) else { return false };
        let is_all =
            |to: &Destination| matches!(to, Destination::Subnet(of) if Subnet::EVERYWHERE.contains(of));
        let mut grants = self.0.iter().filter(|grant| port.is_none_or(|port| grant.has_port(port)));
        grants.any(|grant| grant.to.has_name(&name) || is_all(&grant.to))
    }

    /// Returns true if a grant has a name or an address, and the port.
    pub(super) fn have(&self, name: Option<&str>, address: IpAddr, port: u16) -> bool {
        let name = name.and_then(asked);
        self.0.iter().filter(|grant| grant.has_port(port)).any(|grant| {
            name.as_ref().is_some_and(|name| grant.to.has_name(name)) || grant.to.has_address(address)
        })
    }

    /// Returns true if a grant of private addresses alone has an address, and the port.
    pub(super) fn name_private(&self, address: IpAddr, port: u16) -> bool {
        let is_private =
            |to: &Destination| matches!(to, Destination::Subnet(subnet) if ranges::is_all_private(subnet));
        self.0
            .iter()
            .any(|grant| grant.has_port(port) && is_private(&grant.to) && grant.to.has_address(address))
    }
}

impl EgressGrant {
    fn has_port(&self, port: u16) -> bool {
        port != 0 && self.port.is_none_or(|own| own == port)
    }
}

impl Destination {
    fn has_name(&self, name: &str) -> bool {
        match self {
            Self::Host(host) => host == name,
            Self::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Self::Subnet(_) => false,
        }
    }

    fn has_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Subnet(subnet) if subnet.contains(address))
    }
}

/// Reads `DESTINATION[,DESTINATION...]`; an empty text has none.
impl FromStr for EgressGrants {
    type Err = EgressGrantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let count = parts().count();
        if count > MAX_EGRESS_GRANTS {
            return Err(EgressGrantError::TooMany(count));
        }
        parts().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for EgressGrant {
    type Err = EgressGrantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let grant = Self::read(text)?;
        let never = match &grant.to {
            Destination::Subnet(subnet) => ranges::never_any_of(subnet),
            Destination::Host(_) | Destination::Below(_) => None,
        };
        match never {
            Some(what) => Err(invalid(text, &format!("{what} are never reached, whatever is granted"))),
            None => Ok(grant),
        }
    }
}

fn invalid(text: &str, reason: &str) -> EgressGrantError {
    EgressGrantError::Invalid { text: text.chars().take(64).collect(), reason: reason.to_owned() }
}

impl EgressGrant {
    /// Reads a grant that may be stored: a program of another version may have let more be granted.
    fn read(text: &str) -> Result<Self, EgressGrantError> {
        let wrong = |reason: &str| invalid(text, reason);
        let (host, port) = with_port(text).ok_or_else(|| wrong(FORM))?;
        let port =
            port.map(|port| read_port(port).ok_or_else(|| wrong("a port is a number from 1 to 65535")));
        let port = port.transpose()?;
        let to = destination(host).map_err(|reason| wrong(&reason))?;
        Ok(Self { to, port })
    }
}

/// Separates a destination from its port.
fn with_port(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest {
            "" => Some((host, None)),
            _ => Some((host, Some(rest.strip_prefix(':')?))),
        };
    }
    match text.split_once(':') {
        // Of IPv6: an address with a port is in brackets.
        Some((_, rest)) if rest.contains(':') => Some((text, None)),
        Some((host, port)) => Some((host, Some(port))),
        None => Some((text, None)),
    }
}

fn read_port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse::<u16>().ok().filter(|port| is_number && *port != 0)
}

fn destination(text: &str) -> Result<Destination, String> {
    let address = text.parse().ok().map(|address: IpAddr| Subnet::only(address.to_canonical()));
    let subnet = match address {
        Some(address) => Some(address),
        None if text.contains('/') => Some(text.parse::<Subnet>().map_err(|error| error.to_string())?),
        None => None,
    };
    if let Some(subnet) = subnet {
        return Ok(Destination::Subnet(subnet));
    }
    match text.strip_prefix("*.") {
        Some(domain) => name(domain).map(Destination::Below),
        None => name(text).map(Destination::Host),
    }
}

/// Returns a name in lower case, without a dot at its end.
fn name(text: &str) -> Result<String, String> {
    let name = asked(text).ok_or(FORM)?;
    let (_, last) = name.rsplit_once('.').ok_or(
        "a name has a domain, such as example.com: names without one are those of the model's applications",
    )?;
    // Numbers would be read as an address, in one of its old forms.
    if !last.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return Err(FORM.to_owned());
    }
    match last {
        "localhost" => Err("it is a name of the unit itself".to_owned()),
        _ => Ok(name),
    }
}

/// Returns a name that a workload asks for, as grants have it; none if no host has such a name.
fn asked(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(is_known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_name = text.len() <= MAX_HOST_BYTES && text.split('.').all(is_label);
    is_name.then(|| text.to_ascii_lowercase())
}

/// Writes `DESTINATION,DESTINATION`, as it is read.
impl fmt::Display for EgressGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grants: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&grants.join(","))
    }
}

/// Writes a grant as it is read.
impl fmt::Display for EgressGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match &self.to {
            Destination::Host(name) => name.clone(),
            Destination::Below(domain) => format!("*.{domain}"),
            Destination::Subnet(subnet) => match subnet.single() {
                Some(address) => address.to_string(),
                None => subnet.to_string(),
            },
        };
        match self.port {
            Some(port) if to.contains(':') => write!(f, "[{to}]:{port}"),
            Some(port) => write!(f, "{to}:{port}"),
            None => f.write_str(&to),
        }
    }
}

impl TryFrom<String> for EgressGrant {
    type Error = EgressGrantError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::read(&text)
    }
}

impl From<EgressGrant> for String {
    fn from(grant: EgressGrant) -> Self {
        grant.to_string()
    }
}
