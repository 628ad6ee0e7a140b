//! The words between an agent's keeper and the process of a pod, over the socket that the process has as its standard
//! input. The end of the socket is the end of the pod. The agent's holder keeps the keeper's end open while no keeper runs.
//!
//! The keeper sends [`PodOrder`]s, each beside a descriptor: one end of a stream. On that stream, the pod first answers with
//! one byte, [`OPENED`] or another one, and then serves it. The pod sends [`PodReport`]s, one JSON text a line. A
//! [`Dial`](PodReport::Dial) is sent beside one end of a stream, too, on which the keeper answers in the same way. A
//! workload sends its pod the same words ([`DialOrder`]) on a socket of its own.

use serde::{Deserialize, Serialize};

use crate::{container::PodState, notice::WorkloadNotice};

/// The first byte of a stream that leads to its target.
pub const OPENED: u8 = 1;

/// The first byte of a stream that nobody listens to. It ends after it.
pub const REFUSED: u8 = 0;

/// The most bytes of a report, as JSON.
pub const MAX_REPORT_BYTES: usize = 4 << 10;

/// The most characters of the reason of a service that ended: one may take six bytes of JSON.
const MAX_REASON: usize = 400;

/// The most characters of the reason of a pod that cannot begin: its host may lack several parts of the confinement, each
/// with its reason and its remedy.
const MAX_FAILURE: usize = 660;

/// The most characters of what a host lacks.
const MAX_LACKS: usize = 500;

/// The target of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodStream {
    /// The pod's Pebble.
    Pebble,
    /// A TCP port on the pod's loopback; never 0.
    Port(u16),
}

/// An order of a keeper to its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodOrder {
    /// Open a stream, whose other end comes beside the order.
    Open(PodStream),
    /// Report [`Ready`](PodReport::Ready), all notices and the state again: another keeper has the socket now. The
    /// descriptor beside the order has no meaning.
    Repeat,
}

impl PodOrder {
    /// The bytes of each order.
    pub const BYTES: usize = 3;

    /// Encodes the order.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        match self {
            Self::Open(PodStream::Pebble) => [0; 3],
            Self::Open(PodStream::Port(port)) => {
                let [high, low] = port.to_be_bytes();
                [1, high, low]
            }
            Self::Repeat => [2, 0, 0],
        }
    }

    /// Decodes an order; none if there is no such order.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        match bytes {
            [0, 0, 0] => Some(Self::Open(PodStream::Pebble)),
            [1, high, low] => Some(Self::Open(PodStream::Port(u16::from_be_bytes([high, low])))),
            [2, 0, 0] => Some(Self::Repeat),
            _ => None,
        }
    }
}

/// A report of a pod to its keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodReport {
    /// The pod listens.
    #[serde(rename_all = "kebab-case")]
    Ready {
        /// The id of this start, in the form of the kernel's own.
        boot_id: String,
        /// The parts of the confinement that the host lacks, with their remedies, as one line; empty if it has all.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        lacks: String,
    },
    /// The pod cannot begin, and ends.
    #[serde(rename_all = "kebab-case")]
    Failed {
        /// The reason in words, cut short if it is long.
        reason: String,
    },
    /// A workload of the pod asks for a connection. One end of a stream comes with the report's first byte.
    Dial(DialOrder),
    /// A service ended by itself. The pod does what its plan says of that.
    ServiceEnded {
        /// The service.
        service: String,
        /// The reason in words, cut short if it is long.
        reason: String,
    },
    /// Something happened that the charm is to be told of.
    #[serde(rename_all = "kebab-case")]
    Notice {
        /// Its number, which grows.
        number: u64,
        /// The notice.
        notice: WorkloadNotice,
    },
    /// The state of services and checks has changed. It replaces the one before.
    State(PodState),
}

impl PodReport {
    /// Creates the report of a pod that listens, within the bounds of a report.
    #[must_use]
    pub fn ready(boot_id: String, lacks: &str) -> Self {
        Self::Ready { boot_id, lacks: lacks.chars().take(MAX_LACKS).collect() }
    }

    /// Creates the report of a pod that cannot begin, within the bounds of a report.
    #[must_use]
    pub fn failed(reason: &str) -> Self {
        Self::Failed { reason: reason.chars().take(MAX_FAILURE).collect() }
    }

    /// Creates the report of a service that ended, within the bounds of a report.
    #[must_use]
    pub fn service_ended(service: String, reason: &str) -> Self {
        Self::ServiceEnded { service, reason: reason.chars().take(MAX_REASON).collect() }
    }
}

/// The target of a workload's connection, as the workload names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DialOrder {
    /// The host, a name or an address without brackets, in at most [`MAX_HOST_BYTES`].
    pub host: String,
    /// The port; [`NAME_ASKED`] is none.
    pub port: u16,
}

/// The port of an order that asks whether the host may be one outside, by its name alone: the answer is [`OPENED`] or another
/// one, and the stream ends after it.
pub const NAME_ASKED: u16 = 0;

/// The most bytes of a host's name, as in the domain name system.
pub const MAX_HOST_BYTES: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_was_written_and_others_are_none() {
        let ports = [1, 80, 255, 256, u16::MAX].map(|port| PodOrder::Open(PodStream::Port(port)));
        for order in ports.into_iter().chain([PodOrder::Open(PodStream::Pebble), PodOrder::Repeat]) {
            assert_eq!(PodOrder::from_bytes(order.to_bytes()), Some(order));
        }
        for bytes in [[0, 0, 1], [2, 1, 0], [3, 0, 0]] {
            assert_eq!(PodOrder::from_bytes(bytes), None);
        }
    }

    #[test]
    fn a_report_fits_whatever_a_service_wrote() {
        let report = PodReport::service_ended("s".repeat(255), &"\u{1}".repeat(100_000));
        assert!(serde_json::to_vec(&report).unwrap().len() < MAX_REPORT_BYTES);
        let named = |number: usize| crate::container::ServiceState {
            name: format!("{number}{}", "\u{1}".repeat(255)),
            startup: crate::container::ReportedStartup::Disabled,
            current: crate::container::ServiceCurrent::Inactive,
            restarts: u32::MAX,
            cannot_start: Some("\u{1}".repeat(1_000)),
        };
        let state = PodState { services: (0..200).map(named).collect(), ..PodState::default() };
        let report = PodReport::State(state.bounded());
        assert!(serde_json::to_vec(&report).unwrap().len() < MAX_REPORT_BYTES);
        let report = PodReport::failed(&"\u{1}".repeat(100_000));
        assert!(serde_json::to_vec(&report).unwrap().len() < MAX_REPORT_BYTES);
        let report = PodReport::ready("b".repeat(36), &"\u{1}".repeat(100_000));
        assert!(serde_json::to_vec(&report).unwrap().len() < MAX_REPORT_BYTES);
    }
}
