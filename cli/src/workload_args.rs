//! The options of an agent about the software beside its units.

use std::ffi::OsString;

use clap::Args;
use periapt_agent::{ContainerDriver, HostGaps, PodDrivers, WorkloadDriver};
use periapt_pod::PodError;
use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result, with_source};

/// The names of drivers.
const NAMESPACES: &str = "namespaces";
const WASM: &str = "wasm";
const PLAIN: &str = "plain";

/// The options. The client's file keeps them, so that the agent of this machine is started again with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct WorkloadArgs {
    /// The drivers of the software beside units: wasm runs the WebAssembly workloads that charms declare in x-periapt,
    /// namespaces runs containers, and plain runs their processes without isolation. They are separated by commas, or the
    /// option is repeated. By default the agent runs none, and charms see containers that have not started
    #[arg(long, value_name = "DRIVER[,DRIVER...]", value_delimiter = ',')]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    workloads: Vec<String>,
    /// Do not start on a host that cannot confine containers of the driver namespaces wholly
    #[arg(long, requires = "workloads")]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    require_confinement: bool,
    /// Accept a driver that isolates nothing: its containers can do all that the agent's user can. For tests
    #[arg(long, requires = "workloads")]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    i_know_that_nothing_is_isolated: bool,
}

impl WorkloadArgs {
    /// Returns true if none was given.
    pub(crate) fn are_none(&self) -> bool {
        self.workloads.is_empty()
    }

    /// Returns the drivers of the agent's pods.
    pub(crate) fn drivers(&self) -> Result<PodDrivers> {
        let mut drivers = PodDrivers::default();
        for driver in &self.workloads {
            match driver.as_str() {
                WASM => drivers.workloads = Some(WorkloadDriver::Wasm),
                NAMESPACES => {
                    let gaps = if self.require_confinement { HostGaps::Refused } else { HostGaps::Told };
                    drivers.containers = Some(ContainerDriver::Namespaces(gaps));
                }
                PLAIN if self.i_know_that_nothing_is_isolated => {
                    drivers.containers = Some(ContainerDriver::Plain);
                }
                PLAIN => {
                    return Err(with_source(PodError::NoIsolation(PLAIN))
                        .with_hint("for a test, add --i-know-that-nothing-is-isolated"));
                }
                other => {
                    return Err(Failure::misused(format!(
                        "there is no driver {other:?} for the workloads of charms: there are {NAMESPACES}, {WASM} \
                         and {PLAIN}"
                    )));
                }
            }
        }
        Ok(drivers)
    }

    /// Returns the options as words of a command line.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        if !self.are_none() {
            words.extend(["--workloads".into(), self.workloads.join(",").into()]);
        }
        if self.require_confinement {
            words.push("--require-confinement".into());
        }
        if self.i_know_that_nothing_is_isolated {
            words.push("--i-know-that-nothing-is-isolated".into());
        }
        words
    }
}
