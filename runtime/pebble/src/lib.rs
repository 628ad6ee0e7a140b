//! The state of a pod, as Pebble's API shows it: layers, services, checks, changes, notices, identities and logs.
//!
//! The crate is pure. [`Supervisor::step`] takes an [`PodInput`] and the time, and returns [`PodOutput`]s: answers to
//! requests, processes to spawn and signal, probes to make. [`Supervisor::next_wake`] says when it wants to be asked
//! again. So `runtime/pod` drives it with processes and sockets, and tests drive it on virtual time. The same inputs
//! always give the same outputs.
//!
//! It is written from Pebble's documentation and from what its clients expect.

mod change;
mod duration;
mod identity;
mod limits;
mod log;
mod log_push;
mod message;
mod notice;
mod plan;
mod signal;
mod supervisor;
mod warning;
mod word;

pub use duration::GoDuration;
pub use identity::Access;
pub use limits::PodLimits;
pub use log::OutputLine;
pub use log_push::{
    LogPush, LogPushForm, LogPushLine, LogPushLocation, LogPushResult, LogPushScheme, LogPushStream,
    LogTargetState,
};
pub use message::{
    Account, AddLayer, ChangeId, ChecksAction, ChecksBody, ExecBody, Exit, IdentitiesBody, LogPushId,
    NoticeBody, NoticesQuery, PodAnswer, PodCaller, PodInput, PodOutput, PodRefusal, PodRequest, PodTime,
    Probe, ProbeId, ProcessId, RequestId, ServicesAction, ServicesBody, SignalsBody, Spawn, Stdio, TaskId,
    WebsocketName,
};
pub use plan::{Adding, CheckLevel, Layer, LayerError, Plan, Stack};
pub use signal::Signal;
pub use supervisor::{PodSettings, Supervisor};
