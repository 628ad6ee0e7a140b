//! The limits that operators set for pods (`docs/decisions/0098-*`).

use std::ffi::OsString;

use periapt_helper::{CgroupLimits, GuardedCgroups};
use periapt_host_api::budget::{BudgetKey, BudgetSettings};
use tokio::task::spawn_blocking;

use super::starter::PodSoftware;

/// The thousandths of a core in the unit of the setting.
const THOUSANDTHS: u32 = 10;

/// The limits that operators set for one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetLimits {
    /// The bytes of memory.
    pub(crate) memory: u64,
    /// The processes and threads.
    processes: u32,
    /// The percent of one core; none for all cores.
    cpu: Option<u32>,
}

impl SetLimits {
    /// Returns the limits by the settings of an application.
    pub(crate) fn of(settings: &BudgetSettings) -> Self {
        let number = |key| u32::try_from(settings.value(key)).unwrap_or(u32::MAX);
        Self {
            memory: settings.value(BudgetKey::WorkloadMemoryLimit),
            processes: number(BudgetKey::WorkloadProcessLimit),
            cpu: Some(number(BudgetKey::WorkloadCpuLimit)).filter(|cpu| *cpu > 0),
        }
    }

    /// Returns the arguments of a pod's process.
    pub(super) fn arguments(&self, software: &PodSoftware) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: String| words.extend([OsString::from(name), value.into()]);
        match software {
            PodSoftware::Container => {}
            PodSoftware::Workload { .. } => option("--memory", format!("{}B", self.memory)),
            PodSoftware::Image(_) => {
                option("--memory", format!("{}B", self.memory));
                option("--processes", self.processes.to_string());
            }
        }
        if let (PodSoftware::Workload { .. } | PodSoftware::Image(_), Some(cpu)) = (software, self.cpu) {
            option("--cpu-power", cpu.to_string());
        }
        words
    }

    /// Returns true if a pod that runs needs a restart for other limits. The processes of a container have a bound of their
    /// number that cannot be raised, and a WebAssembly workload's memory and share of the processors are set at its start.
    pub(super) fn need_restart(&self, other: &Self, software: &PodSoftware) -> bool {
        match software {
            PodSoftware::Container => false,
            PodSoftware::Workload { .. } => (self.memory, self.cpu) != (other.memory, other.cpu),
            PodSoftware::Image(_) => self.processes != other.processes,
        }
    }

    /// Sets the limits of a container that runs. The error is in words.
    pub(super) async fn bind(self, software: &PodSoftware, process: u32) -> Result<(), String> {
        if !matches!(software, PodSoftware::Image(_)) {
            return Ok(());
        }
        let cpu = self.cpu.map(|cpu| cpu.saturating_mul(THOUSANDTHS));
        let limits = CgroupLimits { memory: self.memory, processes: self.processes, cpu };
        let bound = spawn_blocking(move || GuardedCgroups::of(process).bind(&limits)).await;
        bound.map_err(|error| error.to_string()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, charm::WorkloadMeta};

    use super::*;
    use crate::keeper::pods::needs::PodNeeds;

    fn set(limits: &[(BudgetKey, u64)]) -> SetLimits {
        SetLimits::of(&BudgetSettings(limits.iter().copied().collect()))
    }

    fn wasm() -> PodSoftware {
        let workload = WorkloadMeta { component: "web.wasm".to_owned(), http: None };
        PodSoftware::Workload { charm: Digest::of(b"charm"), workload, mounts: Ok(Default::default()) }
    }

    fn image() -> PodSoftware {
        PodSoftware::Image(PodNeeds::Unmet(String::new()))
    }

    #[test]
    fn limits_reach_a_pod_as_its_driver_takes_them() {
        let told = |limits: &SetLimits, software| {
            let words = limits.arguments(&software).into_iter();
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        let usual = set(&[]);
        assert_eq!(told(&usual, image()), "--memory 1073741824B --processes 1024");
        let some = set(&[(BudgetKey::WorkloadCpuLimit, 50), (BudgetKey::WorkloadMemoryLimit, 64 << 20)]);
        assert_eq!(told(&some, image()), "--memory 67108864B --processes 1024 --cpu-power 50");
        assert_eq!(told(&usual, wasm()), "--memory 1073741824B");
        assert_eq!(told(&some, wasm()), "--memory 67108864B --cpu-power 50");
        assert_eq!(told(&some, PodSoftware::Container), "");
    }

    #[test]
    fn a_running_pod_is_restarted_for_what_the_kernel_cannot_change() {
        let usual = set(&[]);
        for (key, value, of_container, of_wasm) in [
            (BudgetKey::WorkloadMemoryLimit, 64 << 20, false, true),
            (BudgetKey::WorkloadCpuLimit, 50, false, true),
            (BudgetKey::WorkloadProcessLimit, 99, true, false),
        ] {
            let other = set(&[(key, value)]);
            assert_eq!(other.need_restart(&usual, &image()), of_container, "{key}");
            assert_eq!(other.need_restart(&usual, &wasm()), of_wasm, "{key}");
            assert!(!other.need_restart(&usual, &PodSoftware::Container), "{key}");
        }
    }
}
