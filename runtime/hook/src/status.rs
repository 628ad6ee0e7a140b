//! Workload statuses (`docs/hook-model.md` 5.3). They leave the hook at once, and stay if it fails.

mod made;

pub(crate) use made::Statuses;

use std::collections::BTreeMap;

use periapt_host_api::{
    Timestamp, UnitName,
    commit::EarlyEffect,
    status::{StatusInfo, WorkloadStatus, derive_application_status},
};
use serde::{Deserialize, Serialize};

use crate::{
    CallAnswer, CallError, CallTime,
    context::{HookContext, HookRun},
    lease::Interruption,
};

/// The statuses that a charm may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CharmStatus {
    /// The workload is busy preparing.
    Maintenance,
    /// The workload waits for an operator.
    Blocked,
    /// The workload waits for another application.
    Waiting,
    /// The workload serves.
    Active,
}

impl CharmStatus {
    /// Parses one of the four words.
    pub(crate) fn parse(word: &str) -> Result<Self, CallError> {
        match word {
            "maintenance" => Ok(Self::Maintenance),
            "blocked" => Ok(Self::Blocked),
            "waiting" => Ok(Self::Waiting),
            "active" => Ok(Self::Active),
            _ => Err(CallError::invalid(format!(
                "invalid status {word:?}, expected one of [maintenance blocked waiting active]"
            ))),
        }
    }
}

impl From<CharmStatus> for WorkloadStatus {
    fn from(status: CharmStatus) -> Self {
        match status {
            CharmStatus::Maintenance => Self::Maintenance,
            CharmStatus::Blocked => Self::Blocked,
            CharmStatus::Waiting => Self::Waiting,
            CharmStatus::Active => Self::Active,
        }
    }
}

/// An application's status with those of its units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationStatuses {
    /// The status that the leader set, or else the worst of the units'.
    pub application: StatusInfo<WorkloadStatus>,
    /// The status of each unit.
    pub units: BTreeMap<UnitName, StatusInfo<WorkloadStatus>>,
}

/// The typed interface: `status`.
impl HookContext {
    /// Sets the unit's status. It leaves the hook at once.
    pub fn status_set(&mut self, now: CallTime, status: CharmStatus, message: &str) -> Result<(), CallError> {
        self.call("status.set", (status, message), |run| run.set_unit_status(now, status, message))
    }

    /// Returns the unit's status.
    pub fn status_get(&mut self) -> StatusInfo<WorkloadStatus> {
        self.call("status.get", (), |run| run.unit_status())
    }

    /// Sets the application's status, which leaves the hook at once; leader only.
    pub fn status_set_application(
        &mut self,
        now: CallTime,
        status: CharmStatus,
        message: &str,
    ) -> CallAnswer<Result<(), CallError>> {
        self.leader_call("status.set-application", (status, message), |run| {
            run.set_application_status(now, status, message)
        })
    }

    /// Returns the status of the application and of each unit; leader only.
    pub fn status_get_application(
        &mut self,
        now: CallTime,
    ) -> CallAnswer<Result<ApplicationStatuses, CallError>> {
        self.leader_call("status.get-application", (), |run| run.application_status(now))
    }

    /// Sets the workload's version, which leaves the hook at once.
    pub fn set_application_version(&mut self, now: CallTime, version: &str) -> Result<(), CallError> {
        self.call("status.set-application-version", (version,), |run| {
            run.set_application_version(now, version)
        })
    }
}

impl HookRun {
    /// Sets the unit's status.
    pub(crate) fn set_unit_status(
        &mut self,
        now: CallTime,
        status: CharmStatus,
        message: &str,
    ) -> Result<(), CallError> {
        self.count_status(message)?;
        let (status, message) = (WorkloadStatus::from(status), message.to_owned());
        self.statuses.unit = Some(StatusInfo::new(status, message.clone(), now.at));
        self.early.push(now.at, EarlyEffect::UnitStatus { status, message });
        Ok(())
    }

    /// Sets the application's status; leader only.
    pub(crate) fn set_application_status(
        &mut self,
        now: CallTime,
        status: CharmStatus,
        message: &str,
    ) -> Result<(), Interruption> {
        let term = self.leader_term(now)?.ok_or_else(not_leader)?;
        self.count_status(message)?;
        let (status, message) = (WorkloadStatus::from(status), message.to_owned());
        self.statuses.application = Some(StatusInfo::new(status, message.clone(), now.at));
        self.early.push(now.at, EarlyEffect::ApplicationStatus { status, message, term });
        Ok(())
    }

    /// Returns the unit's status, as set in this hook or before it.
    pub(crate) fn unit_status(&self) -> StatusInfo<WorkloadStatus> {
        self.statuses.unit.clone().unwrap_or_else(|| self.snapshot.own().workload_status.clone())
    }

    /// Returns the application's status; leader only.
    pub(crate) fn application_status(&mut self, now: CallTime) -> Result<ApplicationStatuses, Interruption> {
        self.leader_term(now)?.ok_or_else(not_leader)?;
        let own = self.snapshot.unit.clone();
        let outlines = self.snapshot.view.outlines.values();
        let mut units: BTreeMap<_, _> = outlines
            .filter(|outline| outline.name.application() == own.application())
            .map(|outline| (outline.name.clone(), outline.workload_status.clone()))
            .collect();
        units.insert(own, self.unit_status());
        let set = self.statuses.application.as_ref().or(self.snapshot.application().status.as_ref());
        let application = match set {
            Some(set) => set.clone(),
            // The view has at least this unit.
            None => derive_application_status(units.values(), Timestamp::UNIX_EPOCH),
        };
        Ok(ApplicationStatuses { application, units })
    }

    /// Sets the workload's version.
    pub(crate) fn set_application_version(&mut self, now: CallTime, version: &str) -> Result<(), CallError> {
        self.count_status(version)?;
        self.early.push(now.at, EarlyEffect::ApplicationVersion { version: version.to_owned() });
        Ok(())
    }

    fn count_status(&mut self, message: &str) -> Result<(), CallError> {
        if message.len() > self.limits.message_bytes {
            return Err(CallError::LimitExceeded(format!(
                "the text is {} bytes long; at most {} are allowed",
                message.len(),
                self.limits.message_bytes
            )));
        }
        if self.statuses.made >= self.limits.statuses {
            return Err(CallError::LimitExceeded(format!(
                "a hook may set at most {} statuses",
                self.limits.statuses
            )));
        }
        self.statuses.made += 1;
        Ok(())
    }
}

fn not_leader() -> CallError {
    CallError::NotLeader("this unit is not the leader".to_owned())
}
