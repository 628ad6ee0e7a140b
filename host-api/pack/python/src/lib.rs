//! Charms in Python on the `ops` framework, unchanged: from a directory of sources to an archive.
//!
//! [`Packer::pack`] splits the metadata like `charmcraft pack`, installs the dependencies with pip,
//! checks the sources for code that cannot work, and runs `componentize-py` on all of it with the
//! package `periapt_ops`. The native Python runs the packer's own code only.

mod component;
mod component_cache;
mod dependency_options;
mod error;
mod finding;
mod metadata;
mod pack;
mod parts;
mod python;
mod shim;
mod tools;
mod vendor;

pub use dependency_options::{DependencyOptions, Repositories};
pub use error::{ImportFailure, PythonError};
pub use finding::{CheckFinding, Severity};
pub use pack::{CheckedCharm, Packer, Step, is_python_charm};
