//! Events that charms asked to be told later (decision 0017).

pub(crate) mod commit;
pub(crate) mod entity;
pub(crate) mod view;
