//! Expressions, of which rules consist. The kernel evaluates a rule's expressions in order, until one does not hold.

use crate::attribute::{attribute, nested, number, text};

/// The first register of four bytes.
const FIRST_REGISTER: u32 = 8;

/// The register of verdicts.
const VERDICT: u32 = 0;

/// A register, which holds a value while a rule is evaluated. A value of more than four bytes takes those after it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterRegister(u32);

impl FilterRegister {
    /// The first register.
    pub const FIRST: Self = Self(FIRST_REGISTER);

    /// Returns the register so many places after this one. There are sixteen.
    pub const fn after(self, places: u32) -> Self {
        Self(self.0 + places)
    }
}

/// The headers of a packet in which a rule looks at bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketHeader {
    /// The header of IPv4 or IPv6.
    Network = 1,
    /// The header of TCP, UDP or ICMP.
    Transport = 2,
}

/// The kinds of comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueComparison {
    /// The values are equal.
    Equal = 0,
    /// The values differ.
    Different = 1,
}

/// The end of a rule whose expressions all held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterVerdict<'a> {
    /// The packet is dropped.
    Drop,
    /// No further rule of the table is evaluated, and the packet goes on.
    Accept,
    /// The rules of another chain are evaluated.
    Jump(&'a str),
}

/// One expression of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterExpression(pub(crate) Vec<u8>);

impl FilterExpression {
    /// Loads the number of the interface by which the packet came, in the host's byte order.
    pub fn interface(into: FilterRegister) -> Self {
        Self::meta(4, into)
    }

    /// Loads the address family: 2 for IPv4, 10 for IPv6.
    pub fn family(into: FilterRegister) -> Self {
        Self::meta(15, into)
    }

    /// Loads the number of the transport's protocol. A packet without a transport does not match the rule.
    pub fn protocol(into: FilterRegister) -> Self {
        Self::meta(16, into)
    }

    /// Loads the direction of the packet in its connection: 0 from the host that began it, 1 to that host.
    pub fn direction(into: FilterRegister) -> Self {
        let direction = 1;
        Self::of("ct", &[number(1, into.0), number(2, direction)])
    }

    /// Loads some bytes of a header. A packet without them does not match the rule.
    pub fn payload(header: PacketHeader, offset: u32, length: u32, into: FilterRegister) -> Self {
        let place = [number(1, into.0), number(2, header as u32), number(3, offset), number(4, length)];
        Self::of("payload", &place)
    }

    /// Loads a given value.
    pub fn value(value: &[u8], into: FilterRegister) -> Self {
        Self::of("immediate", &[number(1, into.0), nested(2, &[attribute(1, value)])])
    }

    /// Clears the bits of a register that a mask has not.
    pub fn mask(register: FilterRegister, mask: &[u8]) -> Self {
        let length = u32::try_from(mask.len()).unwrap_or(u32::MAX);
        let nothing = vec![0; mask.len()];
        let registers = [number(1, register.0), number(2, register.0), number(3, length)];
        let values = [nested(4, &[attribute(1, mask)]), nested(5, &[attribute(1, &nothing)])];
        Self::of("bitwise", &[registers.concat(), values.concat()])
    }

    /// Holds if the comparison of a register with a value does.
    pub fn compare(register: FilterRegister, how: ValueComparison, with: &[u8]) -> Self {
        let with = nested(3, &[attribute(1, with)]);
        Self::of("cmp", &[number(1, register.0), number(2, how as u32), with])
    }

    /// Holds if a set of the rule's table has the values of this register and of those after it.
    pub fn is_in(set: &str, register: FilterRegister) -> Self {
        Self::of("lookup", &[text(1, set), number(2, register.0)])
    }

    /// Redirects the packet's connection to the port of this host that a register holds.
    pub fn redirect(port: FilterRegister) -> Self {
        Self::of("redir", &[number(1, port.0)])
    }

    /// Ends the rule with a verdict.
    pub fn verdict(verdict: FilterVerdict<'_>) -> Self {
        let (code, chain): (i32, _) = match verdict {
            FilterVerdict::Drop => (0, None),
            FilterVerdict::Accept => (1, None),
            FilterVerdict::Jump(chain) => (-3, Some(chain)),
        };
        let chain = chain.map(|chain| text(2, chain)).unwrap_or_default();
        let verdict = nested(2, &[number(1, code.cast_unsigned()), chain]);
        Self::of("immediate", &[number(1, VERDICT), nested(2, &[verdict])])
    }

    fn meta(key: u32, into: FilterRegister) -> Self {
        Self::of("meta", &[number(1, into.0), number(2, key)])
    }

    /// Returns the expression as an element of a rule's list.
    fn of(name: &str, data: &[Vec<u8>]) -> Self {
        Self(nested(1, &[text(1, name), nested(2, data)]))
    }
}
