//! The state of services and checks, for the operator.

use periapt_host_api::container::{
    CheckState, CheckStatus, PodState, ReportedStartup, ServiceCurrent, ServiceState,
};

use super::{Supervisor, services::Run};

impl Supervisor {
    /// Returns the number of changes of [`Self::state`] so far. A check that fails less often than its threshold is no
    /// change.
    #[must_use]
    pub fn state_changes(&self) -> u64 {
        self.state_changes
    }

    /// Returns the state of the plan's services and checks, within its bounds.
    #[must_use]
    pub fn state(&self) -> PodState {
        let startup = |is_enabled| match is_enabled {
            true => ReportedStartup::Enabled,
            false => ReportedStartup::Disabled,
        };
        let services = self.stack.plan().services.iter().map(|(name, service)| {
            let run = self.services.get(name);
            ServiceState {
                name: name.clone(),
                startup: startup(service.is_enabled()),
                current: run.map_or(ServiceCurrent::Inactive, current),
                restarts: run.map_or(0, |run| run.restarts),
                cannot_start: run.and_then(|run| run.cannot_start.clone()),
            }
        });
        let checks = self.checks.iter().map(|(name, run)| {
            let threshold = run.config.threshold();
            CheckState {
                name: name.clone(),
                startup: startup(run.config.is_enabled()),
                status: match &run.active {
                    None => CheckStatus::Inactive,
                    Some(active) if active.is_down => CheckStatus::Down,
                    Some(_) => CheckStatus::Up,
                },
                failures: u32::try_from(run.failures).unwrap_or(u32::MAX).min(threshold),
                threshold,
            }
        });
        PodState { services: services.collect(), checks: checks.collect(), left_out: 0 }.bounded()
    }

    pub(super) fn state_changed(&mut self) {
        self.state_changes = self.state_changes.wrapping_add(1);
    }
}

fn current(run: &Run) -> ServiceCurrent {
    match run.current() {
        "active" => ServiceCurrent::Active,
        "backoff" => ServiceCurrent::Backoff,
        "error" => ServiceCurrent::Error,
        _ => ServiceCurrent::Inactive,
    }
}
