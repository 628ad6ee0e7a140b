//! Authorization: one table of rights ([`table`]), which says who may do what, and its checks.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod request;
pub(crate) mod scope;
pub(crate) mod table;
