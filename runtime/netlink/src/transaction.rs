//! Transactions of nf_tables.

use std::io;

use rustix::net::netlink;

use crate::{
    attribute::{nested, number, text},
    expression::FilterExpression,
    generation::FilterGeneration,
    message::{ANSWERED, LAST, NEW, REQUEST, TABLES, ask, header, message},
    set::{FilterSet, SetInterval},
};

/// The kinds of messages.
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
const NEW_TABLE: u16 = TABLES;
const GET_TABLE: u16 = TABLES | 1;
const DELETE_TABLE: u16 = TABLES | 2;
const NEW_CHAIN: u16 = TABLES | 3;
const NEW_RULE: u16 = TABLES | 6;
const NEW_SET: u16 = TABLES | 9;
const NEW_ELEMENTS: u16 = TABLES | 12;
const DELETE_ELEMENTS: u16 = TABLES | 14;

/// The code of a transaction for another generation than the present one (`ERESTART`).
const OVERTAKEN: i32 = 85;

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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilterTransaction {
    messages: Vec<u8>,
    orders: u32,
    sets: u32,
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
        let content = [text(1, table.name), text(2, set.name), set.attributes(self.sets)].concat();
        self.order(NEW_SET, NEW, table.family, content);
        self.add_elements(table, set.name, elements);
    }

    /// Adds elements to a set.
    pub fn add_elements(&mut self, table: FilterTable<'_>, set: &str, elements: &[SetInterval]) {
        self.order_elements((NEW_ELEMENTS, NEW), table, set, elements);
    }

    /// Deletes elements of a set. Each must be there as it was added.
    pub fn delete_elements(&mut self, table: FilterTable<'_>, set: &str, elements: &[SetInterval]) {
        self.order_elements((DELETE_ELEMENTS, 0), table, set, elements);
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
    pub fn commit(self) -> io::Result<()> {
        self.carry_out(&[])
    }

    /// Has the kernel carry the orders out if the network's tables are of a generation. Those of the next one have what this
    /// transaction made of them, and nothing else.
    ///
    /// # Errors
    /// As for [`Self::commit`]; or another program has changed tables meanwhile ([`io::ErrorKind::Interrupted`]).
    pub fn commit_at(self, generation: FilterGeneration) -> io::Result<()> {
        self.carry_out(&generation.attribute()).map_err(|error| match error.raw_os_error() {
            Some(OVERTAKEN) => {
                io::Error::new(io::ErrorKind::Interrupted, "another program has changed tables meanwhile")
            }
            _ => error,
        })
    }

    fn carry_out(self, condition: &[u8]) -> io::Result<()> {
        let begin = message(BEGIN, REQUEST, 0, &[header(0, OF_TABLES), condition.to_vec()].concat());
        let end = message(END, REQUEST, self.orders + 1, &header(0, OF_TABLES));
        let answers = usize::try_from(self.orders).unwrap_or(usize::MAX);
        ask(Some(netlink::NETFILTER), &[begin, self.messages, end].concat(), answers)
    }

    fn order_elements(
        &mut self,
        (kind, flags): (u16, u16),
        table: FilterTable<'_>,
        set: &str,
        elements: &[SetInterval],
    ) {
        for elements in elements.chunks(ELEMENTS) {
            let elements: Vec<_> = elements.iter().map(SetInterval::attributes).collect();
            let content = [text(1, table.name), text(2, set), nested(3, &elements)].concat();
            self.order(kind, flags, table.family, content);
        }
    }

    fn order(&mut self, kind: u16, flags: u16, family: FilterFamily, content: Vec<u8>) {
        self.orders += 1;
        let content = [header(family as u8, 0), content].concat();
        self.messages.extend(message(kind, REQUEST | ANSWERED | flags, self.orders, &content));
    }
}

#[cfg(test)]
mod tests;
