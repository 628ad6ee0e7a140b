//! The interface `status`.

use periapt_hook::CharmStatus;
use periapt_host_api::status::{StatusInfo as Info, WorkloadStatus as Workload};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::status::{ApplicationStatus, Status, StatusInfo, WorkloadStatus},
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "set", |context, now, (status, message): (WorkloadStatus, String)| {
        context.status_set(now, status.into(), &message).map_err(Error::from)
    })?;
    host_call::link(interface, "get", |context, _, (): ()| {
        Ok::<_, Error>(StatusInfo::from(context.status_get()))
    })?;
    host_call::link_leader(
        interface,
        "set-application",
        |context, now, (status, message): &(WorkloadStatus, String)| {
            let answer = context.status_set_application(now, (*status).into(), message);
            answer.map(|done| done.map_err(Error::from))
        },
    )?;
    host_call::link_leader(interface, "get-application", |context, now, (): &()| {
        context.status_get_application(now).map(|status| {
            let status = status.map_err(Error::from)?;
            let units = status.units.into_iter();
            Ok::<_, Error>(ApplicationStatus {
                application: status.application.into(),
                units: units.map(|(unit, info)| (unit.to_string(), info.into())).collect(),
            })
        })
    })?;
    host_call::link(interface, "set-application-version", |context, now, (version,): (String,)| {
        context.set_application_version(now, &version).map_err(Error::from)
    })
}

impl From<WorkloadStatus> for CharmStatus {
    fn from(status: WorkloadStatus) -> Self {
        match status {
            WorkloadStatus::Maintenance => Self::Maintenance,
            WorkloadStatus::Blocked => Self::Blocked,
            WorkloadStatus::Waiting => Self::Waiting,
            WorkloadStatus::Active => Self::Active,
        }
    }
}

impl From<Workload> for Status {
    fn from(status: Workload) -> Self {
        match status {
            Workload::Error => Self::Error,
            Workload::Blocked => Self::Blocked,
            Workload::Maintenance => Self::Maintenance,
            Workload::Waiting => Self::Waiting,
            Workload::Active => Self::Active,
            Workload::Terminated => Self::Terminated,
            Workload::Unknown => Self::Unknown,
        }
    }
}

impl From<Info<Workload>> for StatusInfo {
    fn from(info: Info<Workload>) -> Self {
        Self {
            status: info.status.into(),
            message: info.message,
            data: serde_json::Value::Object(info.data).to_string(),
        }
    }
}
