//! What the tests from outside share: an installation of the one binary in a temporary place, driven as an operator
//! drives it.

mod binary;
mod held;
mod installation;
mod packed;

pub use binary::{binary, check_helper};
pub use held::{Held, Part, on_disk, parts};
pub use installation::{Done, Installation, Running, signal};
pub use packed::{edition, module, packed, packed_changed, packed_edition};
