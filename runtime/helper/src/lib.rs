//! Processes that handle untrusted bytes.
//!
//! A *helper* is this program once more, for one piece of work: it reads an untrusted input, and writes an output.
//! The kernel enforces its limits, and a [`Fence`] confines it to its open descriptors. [`Program::run`] starts one
//! and waits for it; the started process calls [`run_helper`]. Runners, which run charms, the processes of workloads
//! ([`WorkloadOrder`]) and their pods raise a fence of the same kind. Long-lived processes return freed memory to the system.
//! The bounds of a container are [`Cgroups`], [`PodUsage`] is what a pod uses, and [`DeletedFiles`] counts the space of those
//! that its processes still hold.
//! [`Stalling`] ends connections whose peers read nothing, and [`DescriptorLines`] are what processes tell each other beside
//! descriptors.

mod cgroups;
mod child;
mod deleted;
mod descendants;
mod descriptors;
mod fence;
mod limits;
mod memory;
mod program;
mod stalled;
mod usage;
mod workload;

pub use cgroups::{CgroupLimits, Cgroups, GuardedCgroups, MissingBound};
pub use child::{Fault, HelperInput, run_helper, run_helper_behind};
pub use deleted::{DeletedFiles, TooManyFiles};
pub use descriptors::{DescriptorLines, receive_beside, send_beside};
pub use fence::{Fence, MissingFence, PodPlaces, PodSockets, RunnerPaths, gaps};
pub use limits::{Limits, forbid_core_dumps};
pub use memory::{Resident, give_back_what_is_freed, give_large_allocations_back};
pub use program::{Failure, Program, keep_descriptors};
pub use stalled::{MayPause, Stalling};
pub use usage::PodUsage;
pub use workload::{
    DirectoryAccess, MAX_WORKLOAD_ORDER, WORKLOAD_VARIABLE, WorkloadDirectory, WorkloadKind, WorkloadLimits,
    WorkloadOrder,
};
