//! The generation of a network's tables.

use std::io;

use rustix::net::netlink;

use crate::{
    attribute::{find, number},
    message::{ANSWERED, REQUEST, TABLES, header, message, question},
};

const GET_GENERATION: u16 = TABLES | 16;

/// The generation of all tables of a network. Each transaction of any program begins the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterGeneration(u32);

impl FilterGeneration {
    /// Returns the generation of this process's network.
    ///
    /// # Errors
    /// This process has no right over the network, or the kernel has no nf_tables.
    pub fn now() -> io::Result<Self> {
        let asked = message(GET_GENERATION, REQUEST | ANSWERED, 1, &header(0, 0));
        let answers = question(netlink::NETFILTER, &asked)?;
        // Behind the header of packets.
        let number = answers.first().and_then(|answer| find(answer.get(4..)?, 1)?.first_chunk().copied());
        let number = number.ok_or_else(|| io::Error::other("the kernel does not say the generation"))?;
        Ok(Self(u32::from_be_bytes(number)))
    }

    /// Returns the generation after one transaction. The kernel passes over zero.
    #[must_use]
    pub fn after_one(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }

    /// Returns the attribute by which a transaction is for this generation alone.
    pub(crate) fn attribute(self) -> Vec<u8> {
        number(1, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_generation_is_zero() {
        assert_eq!(FilterGeneration(1).after_one(), FilterGeneration(2));
        assert_eq!(FilterGeneration(u32::MAX).after_one(), FilterGeneration(1));
    }
}
