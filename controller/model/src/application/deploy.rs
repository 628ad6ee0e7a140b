//! The deployment of an application with its peer relations and first units (`docs/hook-model.md` 7.2).

use periapt_host_api::{
    ApplicationName, Digest, ErrorCode, LeaderTerm, Refusal, RelationId, StorageName,
    budget::{BudgetKey, BudgetSettings},
    charm::{CharmMeta, UnmetAssumptions},
    command::{Answer, Caller, Deploy},
    record::CharmRef,
    relation::{Endpoint, Role},
    settings::{ModelConfig, OptionValues, WorkloadCrash},
    status::Life,
    storage::StorageDirectives,
    usage::Usage,
};

use super::{config, constraints};
use crate::{
    access::check::may_use_charm,
    controller::level,
    entity::{Application, ModelCharm, Relation, RelationProgress, SequenceKey},
    network, offer, resource, secret,
    storage::{self, takeover::TakenOver},
    transaction::Transaction,
    unit,
};

pub(crate) fn deploy(tx: &mut Transaction<'_>, caller: &Caller, deploy: &Deploy) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let meta = uploaded(tx, caller, &deploy.charm)?;
    let name = match &deploy.application {
        Some(name) => name.clone(),
        None => ApplicationName::new(&meta.name).map_err(|error| Refusal::bad_request(error.to_string()))?,
    };
    let cannot = |code, reason: &str| {
        let text = format!("cannot add application {:?}: {reason}", name.as_str());
        Refusal::new(code, text).about(format!("application {name}"))
    };
    if tx.state.application(&name).is_some() {
        return Err(cannot(ErrorCode::AlreadyExists, "application already exists"));
    }
    if secret::life::remain(&tx.state, &name) {
        let reason = "secrets of the application that had this name are still being removed; try again";
        return Err(cannot(ErrorCode::TryAgain, reason));
    }
    if offer::is_consumer_name(&name) {
        return Err(cannot(ErrorCode::BadRequest, "consumers of offers are called so"));
    }
    if tx.state.remote_application(&name).is_some() {
        return Err(cannot(ErrorCode::AlreadyExists, "saas application with same name already exists"));
    }
    if meta.subordinate && (deploy.units > 0 || !deploy.placement.is_empty()) {
        return Err(cannot(ErrorCode::BadRequest, "subordinate application must be deployed without units"));
    }
    check_assumed(meta, Checks::of_force(deploy.force))
        .map_err(|unmet| cannot(ErrorCode::NotSupported, &unmet.to_string()))?;
    unit::command::check_request(tx, deploy.units, &deploy.placement)
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    let mut options = deploy.config.clone();
    let mut budgets =
        config::change_budgets(meta, &BudgetSettings::default(), &mut options, &mut Vec::new())?;
    let workload_egress = config::change_egress(meta, None, &mut options, &mut Vec::new())?;
    let workload_crash = config::change_crash(meta, WorkloadCrash::default(), &mut options, &mut Vec::new())?;
    constraints::check_of_application(&deploy.constraints, meta.subordinate)
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    let mut asked = BudgetSettings::default();
    constraints::set_limits(tx.root, &mut asked, &deploy.constraints, constraints::limited(meta))
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    for (key, limit) in asked.0 {
        if budgets.0.insert(key, limit).is_some_and(|set| set != limit) {
            let name = if key == BudgetKey::WorkloadCpuLimit { "cpu-power" } else { "mem" };
            let text = format!("the constraint {name} and the setting {key} are the same thing, and differ");
            return Err(cannot(ErrorCode::BadRequest, &text));
        }
    }
    level::check_limits(tx.root, &budgets)?;
    let mut settings = config::change(meta, &OptionValues::new(), &options, &[])?;
    check_storage(tx.state.config(), meta, &deploy.storage)
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    let arrival = TakenOver::check(tx, meta, &deploy.storage, &deploy.attach_storage)
        .and_then(|taken| taken.place(tx, deploy.units, &deploy.placement))
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;
    crate::secret::command::check_options(&tx.state, &mut settings, deploy.config.keys())?;

    network::command::check_bindings(tx, meta, &deploy.bindings)?;
    let resources = resource::command::first(tx, caller, meta, &deploy.resources)
        .map_err(|refusal| cannot(refusal.code, &refusal.message))?;

    use_charm(tx, &deploy.charm, meta)?;
    let charm = CharmRef { digest: deploy.charm, modified_version: 0 };
    tx.put(Application {
        name: name.clone(),
        life: Life::Alive,
        charm,
        force_charm: false,
        former_charms: Vec::new(),
        subordinate: meta.subordinate,
        config_hash: config::config_hash(meta, &settings, charm),
        settings_version: 0,
        config: settings,
        constraints: deploy.constraints.agents.clone(),
        kept_constraints: deploy.constraints.kept.clone(),
        storage: deploy.storage.clone(),
        resources,
        budgets,
        removed_usage: Usage::default(),
        trust: deploy.trust,
        trust_hash: config::trust_hash(deploy.trust),
        update_status_interval: None,
        workload_egress,
        workload_crash,
        exposed: false,
        exposures: Default::default(),
        bindings: deploy.bindings.clone(),
        leader: None,
        last_term: LeaderTerm(0),
        leader_settings: Default::default(),
        leader_settings_version: 0,
        status: None,
        status_refreshed: None,
        workload_version: String::new(),
        created_at: tx.now(),
    });
    add_peers(tx, &name, meta)?;
    let units = unit::command::create(tx, &name, deploy.units, &arrival)?;
    Ok(Answer::Application { name, units })
}

/// The treatment of a charm that fails a check which an operator may skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The charm is refused.
    Required,
    /// The charm is accepted: the operator gave `--force`.
    Skipped,
}

impl Checks {
    /// Converts `--force`.
    pub(crate) fn of_force(force: bool) -> Self {
        if force { Self::Skipped } else { Self::Required }
    }
}

/// Checks that the controller has the features that the charm assumes.
pub(crate) fn check_assumed(meta: &CharmMeta, checks: Checks) -> Result<(), UnmetAssumptions> {
    match meta.assumes.check() {
        Err(unmet) if checks == Checks::Required => Err(unmet),
        _ => Ok(()),
    }
}

/// Checks that the charm accepts the storage that each unit would get.
fn check_storage(
    model: &ModelConfig,
    meta: &CharmMeta,
    directives: &StorageDirectives,
) -> Result<(), Refusal> {
    storage::life::check(meta, directives, |_| 0)?;
    let each = storage::life::of_new_unit(meta, directives);
    let made = |name: &StorageName| each.iter().any(|wanted| wanted.name == *name);
    let own = storage::life::unsized_by(meta, directives).filter(|(name, _)| made(name));
    storage::life::check_sizes(model, meta, own)?;
    storage::life::check_total(each.iter().fold(0, |sum, wanted| sum.saturating_add(wanted.count)))
}

/// Returns the metadata of an uploaded charm.
///
/// # Errors
/// The charm does not exist, or the caller may not use it; the refusals are the same.
pub(crate) fn uploaded<'a>(
    tx: &Transaction<'a>,
    caller: &Caller,
    digest: &Digest,
) -> Result<&'a CharmMeta, Refusal> {
    match tx.root.charm(digest).filter(|_| may_use_charm(tx.root, caller, digest)) {
        Some(charm) => Ok(&charm.meta),
        None => Err(Refusal::not_found(format!("charm {} not found: upload it first", digest.short()))
            .about(format!("charm {digest}"))),
    }
}

/// Notes that the model uses a charm, under the next free revision of its name if the charm is new in the model
/// (M-13).
pub(crate) fn use_charm(tx: &mut Transaction<'_>, digest: &Digest, meta: &CharmMeta) -> Result<(), Refusal> {
    if tx.state.charm(digest).is_none() {
        let revision = tx.take_numbers(SequenceKey::CharmRevision(meta.name.clone()), 1)?;
        tx.put(ModelCharm { digest: *digest, revision: u64::from(revision) });
    }
    Ok(())
}

/// Creates the peer relations that the charm declares and the application does not have yet.
pub(crate) fn add_peers(
    tx: &mut Transaction<'_>,
    application: &ApplicationName,
    meta: &CharmMeta,
) -> Result<(), Refusal> {
    for (name, endpoint) in meta.endpoints_of(Role::Peer) {
        let has_it = |relation: &Relation| {
            relation.is_peer() && relation.endpoints.iter().any(|end| end.name == *name)
        };
        if tx.state.relations_of(application).any(|relation| has_it(relation)) {
            continue;
        }
        let id = RelationId(tx.take_numbers(SequenceKey::Relation, 1)?);
        tx.put(Relation {
            id,
            endpoints: vec![Endpoint {
                application: application.clone(),
                name: name.clone(),
                role: Role::Peer,
                interface: endpoint.interface.clone(),
            }],
            scope: endpoint.scope,
            life: Life::Alive,
            suspended: false,
            suspended_reason: String::new(),
            cross: None,
            egress: Vec::new(),
            progress: RelationProgress::Joining,
            state_since: None,
            created_at: tx.now(),
        });
    }
    Ok(())
}
