//! Transactions of nf_tables.

use std::io;

use rustix::net::netlink;

use crate::{
    attribute::{nested, number, text},
    expression::FilterExpression,
    message::{ANSWERED, LAST, NEW, REQUEST, ask, message},
    set::{FilterSet, SetInterval},
};

/// The kinds of messages.
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
const TABLES: u16 = 10 << 8;
const NEW_TABLE: u16 = TABLES;
const GET_TABLE: u16 = TABLES | 1;
const DELETE_TABLE: u16 = TABLES | 2;
const NEW_CHAIN: u16 = TABLES | 3;
const NEW_RULE: u16 = TABLES | 6;
const NEW_SET: u16 = TABLES | 9;
const NEW_ELEMENTS: u16 = TABLES | 12;

/// The part of the kernel that a transaction is for, in its first and its last message.
const OF_TABLES: u16 = 10;

/// The most elements of a set in one message, whose lists have at most 64 KiB.
const ELEMENTS: usize = 256;

/// The packets that a table is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterFamily {
    /// IPv4 and IPv6.
    Inet = 1,
    /// IPv4.
    Ipv4 = 2,
}

/// The name of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterTable<'a> {
    /// The packets that it is for.
    pub family: FilterFamily,
    /// The name, unique in its family; at most 255 bytes.
    pub name: &'a str,
}

/// The place of a packet's way at which the kernel evaluates a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainPlace {
    /// Packets for this host, after their addresses were translated. What no rule drops goes on.
    Input,
    /// The first packet of each connection that this host begins, for the translation of addresses.
    OutputTranslation,
}

impl FilterTable<'_> {
    /// Returns true if this process's network has the table.
    ///
    /// # Errors
    /// This process has no right over the network, or the kernel has no nf_tables.
    pub fn exists(&self) -> io::Result<bool> {
        let content = [header(self.family as u8, 0), text(1, self.name)].concat();
        match ask(Some(netlink::NETFILTER), &message(GET_TABLE, REQUEST | ANSWERED, 1, &content), 1) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Orders that the kernel carries out wholly or not at all. Packets meet the tables before it or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterTransaction {
    messages: Vec<u8>,
    orders: u32,
    sets: u32,
}

impl Default for FilterTransaction {
    fn default() -> Self {
        Self { messages: message(BEGIN, REQUEST, 0, &header(0, OF_TABLES)), orders: 0, sets: 0 }
    }
}

impl FilterTransaction {
    /// Creates a table, if there is none of its name.
    pub fn create_table(&mut self, table: FilterTable<'_>) {
        self.order(NEW_TABLE, NEW, table.family, text(1, table.name));
    }

    /// Deletes a table with all that is in it.
    pub fn delete_table(&mut self, table: FilterTable<'_>) {
        self.order(DELETE_TABLE, 0, table.family, text(1, table.name));
    }

    /// Deletes a table, if there is one of its name.
    pub fn delete_table_if_any(&mut self, table: FilterTable<'_>) {
        // Then there is one to delete, whether or not there was.
        self.create_table(table);
        self.delete_table(table);
    }

    /// Creates a chain that the kernel evaluates by itself.
    pub fn create_base_chain(&mut self, table: FilterTable<'_>, name: &str, place: ChainPlace) {
        let (kind, hook, priority): (_, u32, i32) = match place {
            ChainPlace::Input => ("filter", 1, 0),
            // Before all that other tables may do.
            ChainPlace::OutputTranslation => ("nat", 3, -100),
        };
        let hook = nested(4, &[number(1, hook), number(2, priority.cast_unsigned())]);
        let chain = [text(1, table.name), text(3, name), hook, text(7, kind)].concat();
        self.order(NEW_CHAIN, NEW, table.family, chain);
    }

    /// Creates a chain that rules jump to.
    pub fn create_chain(&mut self, table: FilterTable<'_>, name: &str) {
        self.order(NEW_CHAIN, NEW, table.family, [text(1, table.name), text(3, name)].concat());
    }

    /// Creates a set with its elements.
    pub fn create_set(&mut self, table: FilterTable<'_>, set: FilterSet<'_>, elements: &[SetInterval]) {
        self.sets += 1;
        let place = [text(1, table.name), text(2, set.name)].concat();
        self.order(NEW_SET, NEW, table.family, [place.clone(), set.attributes(self.sets)].concat());
        for elements in elements.chunks(ELEMENTS) {
            let elements: Vec<_> = elements.iter().map(SetInterval::attributes).collect();
            let content = [place.clone(), nested(3, &elements)].concat();
            self.order(NEW_ELEMENTS, NEW, table.family, content);
        }
    }

    /// Adds a rule after those of its chain.
    pub fn add_rule(&mut self, table: FilterTable<'_>, chain: &str, expressions: Vec<FilterExpression>) {
        let expressions: Vec<_> = expressions.into_iter().map(|FilterExpression(bytes)| bytes).collect();
        let rule = [text(1, table.name), text(2, chain), nested(4, &expressions)].concat();
        self.order(NEW_RULE, NEW | LAST, table.family, rule);
    }

    /// Has the kernel carry the orders out, in this process's network.
    ///
    /// # Errors
    /// The kernel refuses one of them, and carries out none; or this process has no right over the network
    /// ([`io::ErrorKind::PermissionDenied`]).
    pub fn commit(mut self) -> io::Result<()> {
        let end = message(END, REQUEST, self.orders + 1, &header(0, OF_TABLES));
        self.messages.extend(end);
        let answers = usize::try_from(self.orders).unwrap_or(usize::MAX);
        ask(Some(netlink::NETFILTER), &self.messages, answers)
    }

    fn order(&mut self, kind: u16, flags: u16, family: FilterFamily, content: Vec<u8>) {
        self.orders += 1;
        let content = [header(family as u8, 0), content].concat();
        self.messages.extend(message(kind, REQUEST | ANSWERED | flags, self.orders, &content));
    }
}

/// Returns the header of a message about packets.
fn header(family: u8, resource: u16) -> Vec<u8> {
    [&[family, 0][..], &resource.to_be_bytes()[..]].concat()
}

#[cfg(test)]
mod tests;
