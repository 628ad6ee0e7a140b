//! Sets, which rules look values up in: intervals of several values beside each other.

use crate::attribute::{attribute, find, nested, number};

/// One value of a set's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetField {
    /// An IPv4 address.
    Ipv4Address,
    /// An IPv6 address.
    Ipv6Address,
    /// A transport's protocol.
    Protocol,
    /// A port.
    Port,
}

impl SetField {
    /// Returns the length in bytes.
    fn length(self) -> usize {
        match self {
            Self::Ipv4Address => 4,
            Self::Ipv6Address => 16,
            Self::Protocol => 1,
            Self::Port => 2,
        }
    }

    /// Returns the number of the type, by which programs that list a set know how to show its elements.
    fn shown_as(self) -> u32 {
        match self {
            Self::Ipv4Address => 7,
            Self::Ipv6Address => 8,
            Self::Protocol => 12,
            Self::Port => 13,
        }
    }
}

/// A set of intervals before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterSet<'a> {
    /// The name, unique in its table.
    pub name: &'a str,
    /// The values of each element, in order.
    pub fields: &'a [SetField],
}

impl FilterSet<'_> {
    /// Returns the attributes of the set, which is the transaction's one of this number.
    pub(crate) fn attributes(&self, id: u32) -> Vec<u8> {
        let (intervals, of_several) = (0x4, 0x80);
        let length: usize = self.fields.iter().map(|field| field.length().next_multiple_of(4)).sum();
        let shown_as = self.fields.iter().fold(0, |shown, field| (shown << 6) | field.shown_as());
        let length_of = |field: &SetField| u32::try_from(field.length()).unwrap_or(u32::MAX);
        let fields: Vec<_> =
            self.fields.iter().map(|field| nested(1, &[number(1, length_of(field))])).collect();
        [
            number(3, intervals | of_several),
            number(4, shown_as),
            number(5, u32::try_from(length).unwrap_or(u32::MAX)),
            number(10, id),
            nested(9, &[nested(2, &fields)]),
        ]
        .concat()
    }
}

/// An element of a set: for each field the first and the last value. Elements of one set must not overlap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetInterval {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl SetInterval {
    /// Creates an element from the first and the last value of each field, in the network's byte order.
    pub fn new(fields: &[(&[u8], &[u8])]) -> Self {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for (lowest, highest) in fields {
            first.extend(filled_up(lowest));
            last.extend(filled_up(highest));
        }
        Self { first, last }
    }

    /// Returns the element as a part of a set's list.
    pub(crate) fn attributes(&self) -> Vec<u8> {
        let (first, last) =
            (nested(1, &[attribute(1, &self.first)]), nested(10, &[attribute(1, &self.last)]));
        nested(1, &[first, last])
    }

    /// Reads the attributes of an element; none if they are of another kind of set.
    pub(crate) fn read(attributes: &[u8]) -> Option<Self> {
        let value = |kind| find(find(attributes, kind)?, 1).map(<[u8]>::to_vec);
        let first = value(1)?;
        Some(Self { last: value(10).unwrap_or_else(|| first.clone()), first })
    }
}

/// Returns a value as registers hold it, in words of four bytes.
fn filled_up(value: &[u8]) -> Vec<u8> {
    let mut value = value.to_vec();
    value.resize(value.len().next_multiple_of(4), 0);
    value
}
