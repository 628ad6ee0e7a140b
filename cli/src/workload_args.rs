//! The options of an agent about the software beside its units.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use periapt_agent::{ContainerDriver, EgressOptions, HostGaps, PodDrivers, WorkloadDriver};
use periapt_host_api::{egress::EgressReach, network::Subnet};
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
    /// The hosts outside of their model that workloads on this machine may connect to, of those that the setting
    /// workload-egress grants: none, those with a public address, or private ones as well if it names these. By default
    /// public
    #[arg(long, value_name = "EXTENT", value_enum, requires = "workloads")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    egress: Option<EgressExtent>,
    /// A subnet that no workload on this machine reaches, whatever workload-egress grants; may be repeated
    #[arg(long, value_name = "CIDR", requires = "workloads")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    egress_deny: Vec<Subnet>,
}

/// The extent to which grants of destinations outside count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum EgressExtent {
    /// None counts.
    None,
    /// For public addresses.
    Public,
    /// For private addresses as well.
    Granted,
}

impl EgressExtent {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Public => "public",
            Self::Granted => "granted",
        }
    }
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

    /// Returns the last word on connections of workloads to hosts outside.
    pub(crate) fn egress(&self) -> EgressOptions {
        let reach = match self.egress {
            Some(EgressExtent::None) => EgressReach::Nothing,
            Some(EgressExtent::Granted) => EgressReach::Granted,
            Some(EgressExtent::Public) => EgressReach::Public,
            None => EgressReach::default(),
        };
        EgressOptions { reach, denied: self.egress_deny.clone() }
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
        if let Some(extent) = self.egress {
            words.extend(["--egress".into(), extent.as_str().into()]);
        }
        for subnet in &self.egress_deny {
            words.extend(["--egress-deny".into(), subnet.to_string().into()]);
        }
        words
    }
}
