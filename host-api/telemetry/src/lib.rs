//! Metrics in Prometheus' text form, and traces by OTLP.
//!
//! - [`metrics`](mod@metrics): the table of a service's metrics is written once, by [`metrics!`]; the exposition and
//!   `docs/metrics.md` are made from it.
//! - [`spans`]: the one vocabulary of spans, for controller, agent and command line.
//! - [`context`]: spans as data, which requests, revisions and frames carry.
//! - [`export`]: the export of spans: to an OTLP collector, or, from a runner that has no network, to its keeper.

pub mod context;
pub mod export;
pub mod listen;
pub mod metrics;
mod otlp;
pub mod record;
pub mod spans;
