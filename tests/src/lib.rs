//! The helpers of the tests from outside, which drive an installation of the binary in a temporary directory as an
//! operator does.

mod binary;
mod guard;
mod held;
mod installation;
mod packed;

pub use binary::{binary, check_helper};
pub use guard::InstallationGuard;
pub use held::{MemoryUse, Part, on_disk, parts};
pub use installation::{Done, Installation, RunningProcess, signal};
pub use packed::{edition, module, packed, packed_changed, packed_edition};
