//! The conformance list: what a charm can observe, row by row, and which test shows it.
//!
//! The rows stand in `rows.yaml`. A test shows a row when its name begins with the row's id (`fn a01_...`, or
//! `fn f13_f16_...` for two); nothing else has to be written anywhere. `docs/conformance.md` is made of both.

mod list;
mod page;
mod scan;

pub use list::{List, Promise, Row, Section};
pub use page::page;
pub use scan::{Found, tests};

/// Where the page is, in the repository.
pub const PAGE: &str = "docs/conformance.md";
