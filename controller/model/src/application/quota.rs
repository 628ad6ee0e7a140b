//! The quotas of a model: the containers and WebAssembly workloads that it may have, and the memory that their limits may
//! sum up to (`docs/decisions/0098-*`).

use periapt_host_api::{
    ErrorCode, Refusal,
    budget::BudgetKey,
    command::{Caller, Command},
    settings::SettingKey,
};

use crate::{
    access::check::{active_user, is_superuser},
    root::{ModelState, Root},
    transaction::Transaction,
};

/// The number of workloads that a model has, and the memory that they may use.
#[derive(Debug, Clone, Copy, Default)]
struct Promised {
    workloads: u64,
    memory: u64,
}

/// Sums up the workloads of all units. It costs the number of applications with units.
fn promised(root: &Root, state: &ModelState) -> Promised {
    let mut sum = Promised::default();
    let key = BudgetKey::WorkloadMemoryLimit;
    for (name, units) in state.unit_counts() {
        let Some(application) = state.application(name) else { continue };
        let Some(charm) = root.charm(&application.charm.digest) else { continue };
        let containers = u64::try_from(charm.meta.containers.len()).unwrap_or(u64::MAX);
        let limit = application.budgets.get(key).unwrap_or_else(|| state.config().budgets.value(key));
        let workloads = units.saturating_mul(containers);
        sum.workloads = sum.workloads.saturating_add(workloads);
        sum.memory = sum.memory.saturating_add(workloads.saturating_mul(limit));
    }
    sum
}

/// Refuses a command after which the workloads of the model's units may take more than before, and more than its quotas.
/// Nothing is summed up in a model without quotas, or for a command that changes no such thing.
pub(crate) fn check(tx: &Transaction<'_>, command: &Command) -> Result<(), Refusal> {
    let may_add = matches!(
        command,
        Command::Deploy(_)
            | Command::AddUnits { .. }
            | Command::SetConfig { .. }
            | Command::SetConstraints { .. }
            | Command::SetModelConstraints { .. }
            | Command::SetModelConfig { .. }
            | Command::Refresh { .. }
    );
    let config = tx.state.config();
    let (workloads, memory) = (config.workload_quota.most(), config.workload_memory_quota.most());
    if !may_add || (workloads.is_none() && memory.is_none()) {
        return Ok(());
    }
    let now = promised(tx.root, &tx.state);
    let before = tx.root.model(&tx.uuid).map(|state| promised(tx.root, state)).unwrap_or_default();
    let refused = |key: SettingKey, text: String| {
        let text =
            format!("{text}; an administrator of the controller may raise {key} by `periapt model-config`");
        Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("model {}", tx.state.model().name)))
    };
    if let Some(most) = workloads.filter(|most| now.workloads > *most && now.workloads > before.workloads) {
        let text = format!(
            "the model would have {} containers and WebAssembly workloads, and may have {most}",
            now.workloads
        );
        return refused(SettingKey::WorkloadQuota, text);
    }
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    if let Some(most) = memory.filter(|most| mebibytes(now.memory) > *most && now.memory > before.memory) {
        let text = format!(
            "the workloads of the model would have {}M of memory by their limits, and may have {most}M",
            mebibytes(now.memory)
        );
        return refused(SettingKey::WorkloadMemoryQuota, text);
    }
    Ok(())
}

/// Refuses changes of a model's quotas by others than administrators of the controller.
pub(crate) fn check_rights<'a>(
    root: &Root,
    caller: &Caller,
    mut keys: impl Iterator<Item = &'a String>,
) -> Result<(), Refusal> {
    let is_quota = |key: &String| key.parse().is_ok_and(SettingKey::is_of_administrators);
    match keys.find(|key| is_quota(key)) {
        Some(key) if !active_user(root, caller).is_some_and(is_superuser) => Err(Refusal::permission_denied(
            format!("permission denied: administrators of the controller alone set {key}"),
        )),
        _ => Ok(()),
    }
}
