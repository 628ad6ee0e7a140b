//! The containers of a unit.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName,
    container::{
        CheckState, ContainerDetails, ContainerImage, ContainerState, ContainerUsage, PodState,
        ReportedDriver, ServiceState,
    },
};
use serde::Serialize;

/// A container, as `show-unit` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ShownContainer {
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<ReportedDriver>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ContainerImage>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    services: Vec<ServiceState>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<CheckState>,
    /// The number of services and checks that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ContainerUsage>,
}

/// Returns the containers as they are printed.
pub(super) fn shown(
    containers: BTreeMap<ContainerName, ContainerDetails>,
) -> BTreeMap<String, ShownContainer> {
    let shown = |(name, details): (ContainerName, ContainerDetails)| (name.to_string(), container(details));
    containers.into_iter().map(shown).collect()
}

fn container(ContainerDetails { image, report }: ContainerDetails) -> ShownContainer {
    let Some(report) = report else {
        return ShownContainer {
            driver: None,
            image,
            // Its agent is gone, or has not told anything yet.
            state: "unknown",
            reason: None,
            boot_id: None,
            starts: None,
            services: Vec::new(),
            checks: Vec::new(),
            left_out: 0,
            usage: None,
        };
    };
    let (state, reason, boot_id) = match report.state {
        ContainerState::Starting => ("starting", None, None),
        ContainerState::Running { boot_id } => ("running", None, Some(boot_id)),
        ContainerState::Down { reason } => ("down", Some(reason), None),
    };
    let PodState { services, checks, left_out } = report.pod;
    let (driver, starts, usage) = (report.driver, Some(report.starts), report.usage);
    ShownContainer { driver, image, state, reason, boot_id, starts, services, checks, left_out, usage }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over by reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
