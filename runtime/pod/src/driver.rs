//! Drivers: the ways to run processes of a workload.

pub(crate) mod accounts;
mod plain;
pub(crate) use plain::PATH as SEARCH_PATH;
pub(crate) mod terminal;
mod thread;
mod wasm;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
    path::PathBuf,
};

use periapt_pebble::{ProcessId, Signal, Spawn};
use tokio::sync::mpsc;

use crate::{files::FileBounds, names::Names, network::Network, outward::WorkloadNetwork};
pub use plain::Plain;
pub(crate) use thread::{Order, Orders, Report, start};
pub(crate) use wasm::no_workload;
pub use wasm::{Wasm, WasmListen, WasmOptions, WasmWorkload};

/// A driver with its options.
#[derive(Debug, Clone)]
pub enum DriverKind {
    /// [`Plain`].
    Plain,
    /// [`Wasm`].
    Wasm(Box<WasmOptions>),
}

impl DriverKind {
    /// Returns true if the driver keeps a workload from the host.
    pub(crate) fn isolates(&self) -> bool {
        match self {
            Self::Plain => false,
            Self::Wasm(_) => true,
        }
    }

    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Wasm(_) => "wasm",
        }
    }

    /// Returns the services that a pod has from its start, by name, with their commands.
    pub(crate) fn services(&self) -> BTreeMap<String, String> {
        match self {
            Self::Plain => BTreeMap::new(),
            Self::Wasm(options) => {
                options.workloads.keys().map(|name| (name.clone(), name.clone())).collect()
            }
        }
    }

    /// Returns the network in which processes connect to others.
    pub(crate) fn workload_network(&self) -> WorkloadNetwork {
        match self {
            Self::Plain => WorkloadNetwork::OfHost,
            Self::Wasm(_) => WorkloadNetwork::Absent,
        }
    }

    /// Builds the driver, and the network that its processes listen in.
    pub(crate) fn build(self) -> (Box<dyn Driver>, Network) {
        match self {
            Self::Plain => (Box::new(Plain::new()), Network::System(Names::OfSystem)),
            Self::Wasm(options) => {
                let (driver, network) = Wasm::new(*options);
                (Box::new(driver), network)
            }
        }
    }
}

/// The streams of a process to start.
#[derive(Debug)]
pub struct Streams {
    /// Standard input.
    pub stdin: OwnedFd,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
    /// True if standard output is a terminal, which the process gets as its controlling one; or if one was asked for, and the
    /// driver has [none](Terminals::Absent).
    pub is_terminal: bool,
}

/// The terminals of a driver's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminals {
    /// A process that asks for one gets it.
    Offered,
    /// The driver refuses processes that ask for one.
    Absent,
}

/// A way to run processes. All calls come from one thread, which lives as long as the pod.
pub trait Driver: Send {
    /// Prepares the surroundings of the processes.
    ///
    /// # Errors
    /// The system's error.
    fn create(&mut self) -> io::Result<()>;

    /// Takes a function that makes the thread call [`exits`](Self::exits), for drivers whose processes are no children of
    /// this one.
    fn wake_by(&mut self, wake: Box<dyn Fn() + Send>) {
        drop(wake);
    }

    /// Takes the way for the sockets on which processes call other units, for drivers whose processes do
    /// (`periapt_host_api::pod`). Without it, they call nobody.
    fn call_by(&mut self, sockets: mpsc::UnboundedSender<OwnedFd>) {
        drop(sockets);
    }

    /// Returns the directory that the processes see as `/`.
    fn root(&self) -> PathBuf;

    /// Returns the bounds on the files below [`root`](Self::root); none if its file system has some, or needs none.
    fn file_bounds(&self) -> Option<FileBounds> {
        None
    }

    /// Returns whether processes can have terminals.
    fn terminals(&self) -> Terminals {
        Terminals::Offered
    }

    /// Returns the names of all programs that it runs; none if these are the executable files below [`root`](Self::root).
    fn programs(&self) -> Option<BTreeSet<String>> {
        None
    }

    /// Starts a process in a process group of its own.
    ///
    /// # Errors
    /// The reason in words.
    fn spawn(&mut self, process: ProcessId, spawn: &Spawn, streams: Streams) -> Result<(), String>;

    /// Sends a signal to a process and its group; to none once the process has ended.
    fn signal(&mut self, process: ProcessId, signal: Signal);

    /// Reaps what has ended, and returns the exit codes of processes that were started.
    fn exits(&mut self) -> Vec<(ProcessId, i32)>;

    /// Returns the reason why no process can run any more, if there is one.
    fn lost(&self) -> Option<String> {
        None
    }

    /// Ends and reaps all processes that are left, those that left their group or their parent included.
    fn kill(&mut self);
}
