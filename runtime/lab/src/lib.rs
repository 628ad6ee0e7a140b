//! A whole model in one process on virtual time: the controller's model, the uniter, hook contexts and charms, composed
//! as in controller and agents, without threads, sockets or a clock.
//!
//! A [`Lab`] has one model, some agents, and time that passes only when a test lets it. Values travel between its parts
//! as between processes: views as frames, frames and commits as JSON. After each frame the mirror is compared with the
//! view. `periapt-uniter` and `periapt-hook` alone decide what runs. The executors of units are those of the agent's
//! runner. The laboratory is another driver of them, which carries out their commands in steps, between which processes
//! may die, answers may be lost, and other units may run ([`Lab::micro_step`]). All randomness comes from one seed.
//!
//! A unit's containers are real cores of pods over processes that a scenario plays ([`Lab::run_containers`]), or pods
//! that a test plays ([`Lab::start_workload`]). Hooks call Pebble at once, outside of their commits ([`Hook::pebble`]).
//!
//! A charm's code is a script, a closure, or with the feature `components` a real component in the sandbox.
//! [`invariants`] holds the invariants of every run.

mod agent;
mod charm;
mod clock;
#[cfg(feature = "components")]
mod component;
mod controller;
mod defect;
mod error;
mod host;
pub mod invariants;
mod lab;
mod pods;
mod random;
mod sealer;
mod trace;
mod transport;

pub use agent::Claims;
pub use charm::{Action, CharmCode, Ending, Hook, HookHost, LabCharm, LabHookReport, ToolCall};
#[cfg(feature = "components")]
pub use component::{Component, ComponentError};
pub use defect::Defect;
pub use error::LabError;
pub use lab::{FaultRates, Lab, ManualUnit, ReductionCache};
pub use pods::{ProbeAnswer, ProcessLife};
pub use random::RandomNumbers;
pub use trace::{HookRunState, Traced};
