//! The resource usage of a model's units, as totals.

use periapt_host_api::{
    budget::BudgetKey,
    usage::{ApplicationUsage, ModelUsage, WorkloadUsage},
};

use crate::root::ModelState;

/// Returns the usage of a model, its applications and its units, with totals of removed ones.
pub fn model_usage(state: &ModelState) -> ModelUsage {
    let mut model = ModelUsage { removed: state.model().removed_usage, ..ModelUsage::default() };
    model.total = model.removed;
    for application in state.applications() {
        let removed = application.removed_usage;
        let mut used = ApplicationUsage { total: removed, removed, ..ApplicationUsage::default() };
        let key = BudgetKey::WorkloadMemoryLimit;
        let limit = application.budgets.get(key).unwrap_or_else(|| state.config().budgets.value(key));
        for unit in state.units_of(&application.name) {
            used.total.add(&unit.usage);
            used.units.insert(unit.name.clone(), unit.usage);
            let Some(reported) = state.workloads_of(&unit.name) else { continue };
            let workloads = WorkloadUsage::of(&reported.report, &reported.counts, limit);
            if !workloads.is_none() {
                model.workloads.add(&workloads);
                used.workloads.insert(unit.name.clone(), workloads);
            }
        }
        model.total.add(&used.total);
        model.applications.insert(application.name.clone(), used);
    }
    model
}
