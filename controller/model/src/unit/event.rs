//! Custom events that charms schedule (decision 0017).

pub(crate) mod commit;
pub(crate) mod entity;
pub(crate) mod view;
