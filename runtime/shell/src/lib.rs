//! The shell language of `exec`: an operator's script, run without a process.
//!
//! A sandbox has no programs, so a script's commands are the hook tools and the commands of [`commands`]. The script
//! is parsed (`parser`) and interpreted (`interpreter`) within [`ScriptLimits`]. The crate is pure: a script sends one
//! [`Request`] at a time, and its caller answers. The agent answers from a unit's hook context and files, a test bench
//! on virtual time.
//!
//! The language is the part of POSIX's that one-liners use: lists, pipes, `if`, `while`, `until`, `for`, groups,
//! redirections, parameters, substitutions, arithmetic and patterns. The rest is a syntax error that names the missing
//! feature.

mod builtins;
mod channel;
mod interpreter;
mod limits;
mod parser;
mod pattern;
mod request;
mod running;
mod script;
mod syntax;

pub use builtins::commands;
pub use limits::{ScriptLimits, Stopped};
pub use request::{FileAnswer, FileCall, FileKind, FileStat, LISTED_NAME, Reply, Request};
pub use running::{Running, ScriptEnd, ScriptProgress};
pub use script::Script;
