//! Subnets.

use std::{fmt, net::IpAddr, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of addresses: `10.0.0.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Subnet {
    first: IpAddr,
    pub(super) bits: u8,
}

/// A text that is no subnet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid CIDR {text:?}: {reason}")]
pub struct SubnetError {
    text: String,
    reason: String,
}

impl Subnet {
    /// All addresses of version 4, and all of version 6.
    pub const EVERYWHERE: [Self; 2] = [
        Self { first: IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), bits: 0 },
        Self { first: IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED), bits: 0 },
    ];

    /// Returns the subnet of an address by the length of its prefix, or `None` if the prefix is too long.
    pub fn around(address: IpAddr, bits: u8) -> Option<Self> {
        (bits <= width(address)).then(|| Self { first: masked(address, bits), bits })
    }

    /// Returns the subnet of one address alone.
    pub fn only(address: IpAddr) -> Self {
        Self { first: address, bits: width(address) }
    }

    /// Returns the first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// Returns the last address.
    pub fn last(&self) -> IpAddr {
        let rest = u32::from(width(self.first).saturating_sub(self.bits));
        match self.first {
            IpAddr::V4(first) => {
                IpAddr::V4((first.to_bits() | !u32::MAX.checked_shl(rest).unwrap_or(0)).into())
            }
            IpAddr::V6(first) => {
                IpAddr::V6((first.to_bits() | !u128::MAX.checked_shl(rest).unwrap_or(0)).into())
            }
        }
    }

    /// Returns true if all addresses of the subnet are in another one.
    pub fn is_within(&self, outer: &Self) -> bool {
        self.bits >= outer.bits && outer.contains(self.first)
    }

    /// Returns the address of a subnet that has only one.
    pub fn single(&self) -> Option<IpAddr> {
        (self.bits == width(self.first)).then_some(self.first)
    }

    /// Returns true if the subnet has an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.first
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let rest = u32::from(width(address).saturating_sub(bits));
    match address {
        IpAddr::V4(address) => {
            IpAddr::V4((address.to_bits() & u32::MAX.checked_shl(rest).unwrap_or(0)).into())
        }
        IpAddr::V6(address) => {
            IpAddr::V6((address.to_bits() & u128::MAX.checked_shl(rest).unwrap_or(0)).into())
        }
    }
}

impl FromStr for Subnet {
    type Err = SubnetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |reason: String| SubnetError { text: text.chars().take(64).collect(), reason };
        let form = || wrong("write it as 10.0.0.0/24 or 2001:db8::/64".to_owned());
        let (address, bits) = text.split_once('/').ok_or_else(form)?;
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let bits = bits.parse().map_err(|_| form())?;
        let subnet = Self::around(address, bits).ok_or_else(form)?;
        match subnet.first == address {
            true => Ok(subnet),
            false => Err(wrong(format!("its first address is {}", subnet.first))),
        }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

impl TryFrom<String> for Subnet {
    type Error = SubnetError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Subnet> for String {
    fn from(subnet: Subnet) -> Self {
        subnet.to_string()
    }
}
