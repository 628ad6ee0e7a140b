//! The status of an application whose leader has set none.

use super::{StatusInfo, WorkloadStatus};
use crate::Timestamp;

/// Returns the worst of the units' statuses, the first of equals (`docs/hook-model.md` ST-2). An application without units
/// is `unknown` since `otherwise_since`. Callers pass the units in order of their names.
pub fn derive_application_status<'a>(
    units: impl IntoIterator<Item = &'a StatusInfo<WorkloadStatus>>,
    otherwise_since: Timestamp,
) -> StatusInfo<WorkloadStatus> {
    units
        .into_iter()
        .min_by_key(|info| severity(info.status))
        .cloned()
        .unwrap_or_else(|| StatusInfo::new(WorkloadStatus::Unknown, "", otherwise_since))
}

/// Ranks a status: the lower, the worse. The ranks are explicit, so that reordering the enum's variants changes
/// nothing.
fn severity(status: WorkloadStatus) -> u8 {
    match status {
        WorkloadStatus::Error => 0,
        WorkloadStatus::Blocked => 1,
        WorkloadStatus::Maintenance => 2,
        WorkloadStatus::Waiting => 3,
        WorkloadStatus::Active => 4,
        WorkloadStatus::Terminated => 5,
        WorkloadStatus::Unknown => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(units: &[(WorkloadStatus, &str)]) -> (WorkloadStatus, String) {
        let infos: Vec<_> = units
            .iter()
            .map(|(status, message)| StatusInfo::new(*status, *message, Timestamp::UNIX_EPOCH))
            .collect();
        let info = derive_application_status(&infos, Timestamp::UNIX_EPOCH);
        (info.status, info.message)
    }

    #[test]
    fn the_worst_unit_speaks_for_the_application() {
        use WorkloadStatus::{Active, Blocked, Error, Maintenance, Terminated, Unknown, Waiting};
        let from_bad_to_good = [Error, Blocked, Maintenance, Waiting, Active, Terminated, Unknown];
        for pair in from_bad_to_good.windows(2) {
            assert_eq!(derived(&[(pair[1], "better"), (pair[0], "worse")]), (pair[0], "worse".into()));
        }
    }

    #[test]
    fn the_first_unit_wins_ties_and_no_unit_is_unknown() {
        use WorkloadStatus::{Unknown, Waiting};
        assert_eq!(derived(&[(Waiting, "first"), (Waiting, "second")]), (Waiting, "first".into()));
        assert_eq!(derived(&[]), (Unknown, String::new()));
    }
}
