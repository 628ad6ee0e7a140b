//! Charms in Python on the `ops` framework, unchanged: from a directory of sources to an archive.
//!
//! [`Packer::pack`] splits the metadata as `charmcraft pack` does, brings the dependencies in with pip,
//! checks the sources for what cannot work, and has `componentize-py` make a component of it all, with
//! the package `periapt_ops` around it. What runs natively meanwhile is the packer's own Python.

mod choices;
mod component;
mod error;
mod finding;
mod kept;
mod metadata;
mod pack;
mod parts;
mod python;
mod shim;
mod tools;
mod vendor;

pub use choices::{Choices, Repositories};
pub use error::PythonError;
pub use finding::{Finding, Severity};
pub use pack::{Packer, Step, is_python_charm};
