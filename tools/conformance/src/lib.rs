//! The conformance list: what a charm can observe, row by row, and which test shows it; and the rules of the hook model,
//! with the rows and tests that show each.
//!
//! The rows stand in `rows.yaml`. A test shows a row when its name begins with the row's id (`fn a01_...`, or
//! `fn f13_f16_...` for two); nothing else has to be written anywhere. `docs/conformance.md` is made of both. The rules stand in
//! `rules.yaml` with what shows them, for `docs/rules.md`.

mod list;
mod page;
mod rules;
mod scan;

pub use list::{List, Promise, Row, Section};
pub use page::page;
pub use rules::{Evidence, Rule, Rules};
pub use scan::{Found, by_row, tests};

/// Where the page of rows is, in the repository.
pub const PAGE: &str = "docs/conformance.md";

/// Where the page of rules is, in the repository.
pub const RULES_PAGE: &str = "docs/rules.md";
