//! The data of `show-application` and `config`.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Digest, EndpointName, Refusal,
    api::{
        ApplicationDetails, BudgetDetails, BudgetSource, EndpointDetails, FormerCharm, SettingDetails,
        SettingSource,
    },
    budget::BudgetKey,
    charm::{CharmMeta, OptionMeta},
    constraints::{Constraints, Limited},
    settings::{ModelSettings, OptionValue},
    status::Life,
};
use periapt_model::{ModelState, Root, entity::Application, limited};

use super::CharmLabel;

/// Returns the details of an application, with its endpoints and settings.
pub(crate) fn application(
    root: &Root,
    state: &ModelState,
    name: &ApplicationName,
) -> Result<ApplicationDetails, Refusal> {
    let application = state.application(name).ok_or_else(|| {
        Refusal::not_found(format!("application {:?} not found", name.as_str()))
            .about(format!("application {name}"))
    })?;
    let digest = application.charm.digest;
    let label = CharmLabel::of(root, state, &digest);
    let meta = root.charm(&digest).map(|charm| &charm.meta);
    Ok(ApplicationDetails {
        name: name.clone(),
        life: application.life,
        charm: label.url(),
        charm_name: label.name,
        charm_revision: label.revision,
        charm_digest: digest,
        former_charms: application
            .former_charms
            .iter()
            .filter_map(|digest| former_charm(root, state, digest))
            .collect(),
        subordinate: application.subordinate,
        exposed: application.exposed,
        trust: application.trust,
        update_status_hook_interval: application.update_status_interval,
        constraints: Constraints::of(
            &application.constraints,
            &application.kept_constraints,
            &application.budgets,
            meta.map_or(Limited::Hooks, limited),
        ),
        storage: application.storage.clone(),
        bindings: application.bindings.clone(),
        exposures: application.exposures.clone(),
        leader: application.leader.as_ref().map(|leader| leader.unit.clone()),
        units: state.units_of(name).map(|unit| unit.name.clone()).collect(),
        endpoints: meta.map(|meta| endpoints(state, name, meta)).unwrap_or_default(),
        settings: meta.map(|meta| settings(application, meta)).unwrap_or_default(),
        workload_egress: application.workload_egress.clone(),
        workload_crash: application.workload_crash,
        budgets: BudgetKey::ALL.map(|key| (key, budget(application, state, key))).into(),
    })
}

fn former_charm(root: &Root, state: &ModelState, digest: &Digest) -> Option<FormerCharm> {
    let charm = root.charm(digest)?;
    let revision = state.charm(digest)?.revision;
    let (name, resources) = (charm.meta.name.clone(), charm.meta.resources.clone());
    Some(FormerCharm { name, revision, digest: *digest, resources })
}

fn budget(application: &Application, state: &ModelState, key: BudgetKey) -> BudgetDetails {
    let is_set = |settings: &ModelSettings| settings.budgets.get(key).is_some();
    let inherited = state.config().budgets.value(key);
    let (value, source) = match application.budgets.get(key) {
        Some(value) => (value, BudgetSource::Application),
        None if is_set(&state.model().settings) => (inherited, BudgetSource::Model),
        None if is_set(state.defaults()) => (inherited, BudgetSource::Controller),
        None => (inherited, BudgetSource::Default),
    };
    BudgetDetails { value, source }
}

fn endpoints(
    state: &ModelState,
    application: &ApplicationName,
    meta: &CharmMeta,
) -> BTreeMap<EndpointName, EndpointDetails> {
    let details = |(name, endpoint): (&EndpointName, &periapt_host_api::charm::EndpointMeta)| {
        let relations = state
            .relations_of(application)
            .filter(|relation| relation.life != Life::Dead)
            .filter(|relation| {
                let own = |end: &&periapt_host_api::relation::Endpoint| end.application == *application;
                relation.endpoints.iter().filter(own).any(|end| end.name == *name)
            })
            .map(|relation| relation.id)
            .collect();
        let details =
            EndpointDetails { role: endpoint.role, interface: endpoint.interface.clone(), relations };
        (name.clone(), details)
    };
    meta.endpoints.iter().map(details).collect()
}

fn settings(application: &Application, meta: &CharmMeta) -> BTreeMap<String, SettingDetails> {
    let details =
        |(key, option): (&String, &OptionMeta)| (key.clone(), setting(option, application.config.get(key)));
    meta.options.iter().map(details).collect()
}

fn setting(option: &OptionMeta, set: Option<&OptionValue>) -> SettingDetails {
    let source = match (set, &option.default) {
        (Some(_), _) => SettingSource::User,
        (None, Some(_)) => SettingSource::Default,
        (None, None) => SettingSource::Unset,
    };
    SettingDetails {
        kind: option.kind,
        description: option.description.clone(),
        default: option.default.clone(),
        value: set.or(option.default.as_ref()).cloned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::charm::OptionType;

    use super::*;

    #[test]
    fn a_setting_says_where_its_value_comes_from() {
        let option = |default| OptionMeta { kind: OptionType::Int, description: "n".into(), default };
        let number = OptionValue::Integer;
        for (default, set, value, source) in [
            (None, None, None, SettingSource::Unset),
            (Some(number(1)), None, Some(number(1)), SettingSource::Default),
            (Some(number(1)), Some(number(1)), Some(number(1)), SettingSource::User),
            (None, Some(number(2)), Some(number(2)), SettingSource::User),
        ] {
            let shown = setting(&option(default), set.as_ref());
            assert_eq!((shown.value, shown.source), (value, source));
        }
    }
}
