//! Attacks on an installation, and what they may find.

mod hostile;
mod planted;
mod takeovers;
mod workloads;
