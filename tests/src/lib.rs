//! The helpers of the tests from outside, which drive an installation of the binary in a temporary directory as an
//! operator does.

mod binary;
mod held;
mod installation;
mod packed;

pub use binary::{binary, check_helper};
pub use held::{Held, Part, on_disk, parts};
pub use installation::{Done, Installation, Running, signal};
pub use packed::{edition, module, packed, packed_changed, packed_edition};
