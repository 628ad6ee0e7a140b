//! The shell language of `exec`: what an operator's script means, run without a process.
//!
//! A sandbox has no programs, so a script's commands are the hook tools and the few words of [`commands`]. A text is
//! parsed (`parser`) and interpreted (`interpreter`) within [`Limits`]. The room is pure: what a script needs of the
//! world it asks for one at a time ([`Request`]), and whoever runs it answers. So the agent answers from a unit's hook
//! context and files, and a laboratory on virtual time.
//!
//! The language is the part of POSIX's that one-liners use: lists, pipes, `if`, `while`, `until`, `for`, groups,
//! redirections, parameters, substitutions, arithmetic and patterns. The rest is a syntax error that names what is not
//! there.

mod builtins;
mod interpreter;
mod limits;
mod parser;
mod pattern;
mod request;
mod script;
mod syntax;

pub use builtins::commands;
pub use limits::{Limits, Stopped};
pub use request::{FileAnswer, FileCall, FileKind, FileStat, LISTED_NAME, Reply, Request};
pub use script::{Ended, Progress, Running, Script};
