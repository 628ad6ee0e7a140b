//! The program of a service, a controller or an agent: how another one replaces it, and how the service goes back.
//!
//! The service fetches the new program beside its data, ends in order, and starts itself anew. Then nothing of it is
//! open, and it *tries* the new program as a child, with its own arguments. Once the child is up, it ends the child and
//! becomes the new program by `execve`, so that the process id stays. A child that ends or hangs is the end of the
//! trial: the service goes on with the program that it has. An agent goes back from a program that ends by itself
//! again and again after its trial, too (`docs/decisions/0079-programs-replace-themselves-after-a-trial.md`).

mod again;
mod decision;
mod digest;
mod inspect;
mod kept;
mod note;
mod process;
mod programs;
mod run;
mod service;
mod trial;

pub use again::Again;
pub use digest::digest_of;
pub use inspect::{ProgramFacts, architecture, inspect};
pub use programs::{Preparation, Programs};
pub use run::{ServiceStart, begin};
pub use service::{AfterTrial, ReplaceableService};
