//! Processes that come near strangers' bytes.
//!
//! A *helper* is this program once more, for one piece of work: it reads its input, which a stranger made, and writes
//! what it made of it. The kernel keeps its limits, and a [`Fence`] keeps it from everything that it was not handed.
//! [`Program::run`] starts one and waits for it, [`run_helper`] is what the started process calls. Runners, which run
//! charms, raise a fence of the same kind. Those that go on give back the memory that they have freed.

mod child;
mod fence;
mod limits;
mod memory;
mod program;

pub use child::{Fault, run_helper};
pub use fence::{Fence, Gap, RunnerPlaces, gaps};
pub use limits::Limits;
pub use memory::{Resident, give_back_what_is_freed};
pub use program::{Failure, Program, keep_descriptors};
