//! Orders to the kernel over netlink, in the form that it documents (`linux/netlink.h`, `linux/rtnetlink.h`,
//! `linux/netfilter/nf_tables.h`). No program of the host is needed.
//!
//! A [`FilterTransaction`] makes and deletes tables of nf_tables, with their sets, chains and rules. The kernel carries
//! out all of it or nothing. Each begins another [`FilterGeneration`], by which programs see that others changed tables.
//! [`make_all_addresses_local`] adds a route.

mod attribute;
mod contents;
mod expression;
mod generation;
mod message;
mod route;
mod set;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transaction;

pub use expression::{FilterExpression, FilterRegister, FilterVerdict, PacketHeader, ValueComparison};
pub use generation::FilterGeneration;
pub use route::make_all_addresses_local;
pub use set::{FilterSet, SetField, SetInterval};
pub use transaction::{ChainPlace, FilterFamily, FilterTable, FilterTransaction};
