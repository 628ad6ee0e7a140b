//! The conformance list: the behaviours that a charm can observe, row by row, with their tests; and the rules of the
//! hook model, with their rows and tests.
//!
//! `rows.yaml` holds the rows. A test shows a row by the row's id at the beginning of its name (`fn a01_...`, or `fn
//! f13_f16_...` for two). `docs/conformance.md` is generated from both. `rules.yaml` holds the rules with the rows and
//! tests that show them, for `docs/rules.md`.

mod list;
mod page;
mod rules;
mod scan;

pub use list::{List, Promise, Row, Section};
pub use page::page;
pub use rules::{Evidence, Rule, Rules};
pub use scan::{Found, by_row, tests};

/// The path of the page of rows.
pub const PAGE: &str = "docs/conformance.md";

/// The path of the page of rules.
pub const RULES_PAGE: &str = "docs/rules.md";
