//! The contents of tables, as the kernel tells them.

use std::{collections::BTreeSet, io};

use rustix::net::netlink;

use crate::{
    attribute::{attributes, find, text},
    message::{LISTED, REQUEST, TABLES, header, message, question},
    set::SetInterval,
    transaction::FilterTable,
};

const GET_RULE: u16 = TABLES | 7;
const GET_ELEMENTS: u16 = TABLES | 13;

impl FilterTable<'_> {
    /// Returns the chain of each rule of the table. A table that does not exist has none.
    ///
    /// # Errors
    /// This process has no right over the network, the kernel has no nf_tables, or the list is larger than 4 MiB.
    pub fn rules(&self) -> io::Result<Vec<String>> {
        let rules = self.list(GET_RULE, &[text(1, self.name)])?;
        let chain = |rule: &Vec<u8>| {
            let name = rule.get(4..).and_then(|rule| find(rule, 2)).unwrap_or_default();
            String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)).into_owned()
        };
        Ok(rules.iter().map(chain).collect())
    }

    /// Returns the elements of a set; none if the table or the set does not exist.
    ///
    /// # Errors
    /// As for [`Self::rules`].
    pub fn elements(&self, set: &str) -> io::Result<Option<BTreeSet<SetInterval>>> {
        let lists = match self.list(GET_ELEMENTS, &[text(1, self.name), text(2, set)]) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lists => lists?,
        };
        let elements = lists.iter().filter_map(|list| find(list.get(4..)?, 3)).flat_map(attributes);
        Ok(Some(elements.filter_map(|(_, element)| SetInterval::read(element)).collect()))
    }

    fn list(&self, kind: u16, which: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
        let content = [header(self.family as u8, 0), which.concat()].concat();
        question(netlink::NETFILTER, &message(kind, REQUEST | LISTED, 1, &content))
    }
}
