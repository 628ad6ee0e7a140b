//! The helpers of the tests from outside, which drive an installation of the binary in a temporary directory as an
//! operator does.

mod acknowledged;
mod attack;
mod binary;
mod busybox;
mod clock;
mod collector;
mod exposition;
mod guard;
mod hook_history;
mod hostile_images;
mod installation;
mod issuer;
mod joined;
mod network;
mod packed;
mod programs;
mod resource_use;
mod trace_tree;
mod traced;

pub use acknowledged::{Acknowledged, CommandDeviations};
pub use attack::{
    Attack, AttackRow, AttackScale, AttackedAgent, AttackedController, AttackedProcess, ServerAttack,
    StoppedBy, WorkloadAttack, attack, attack_table, nobody,
};
pub use binary::{binary, check_helper, previous_binary};
pub use busybox::{busybox_root, skipped};
pub use collector::{Collected, Collector};
pub use exposition::{Scrape, ScrapedSample};
pub use guard::InstallationGuard;
pub use hook_history::HookHistory;
pub use hostile_images::{EVIL, HostileImage, ImageFate, hostile_images};
pub use installation::{Done, Installation, POLL_INTERVAL, RunningProcess, is_alive, signal};
pub use issuer::{IssuerDecision, IssuerKey, TestIssuer};
pub use joined::JoinedAgent;
pub use network::{
    Link, OUTSIDE, add_address_outside, free_port, in_own_network, network_of, set_link, set_path,
};
pub use packed::{edition, module, packed, packed_changed, packed_edition, packed_parts};
pub use programs::{ends_at_once, patched, stripped, varied};
pub use resource_use::{CpuTime, MemoryUse, Part, on_disk, parts};
pub use trace_tree::TraceTree;
pub use traced::TracedInstallation;
