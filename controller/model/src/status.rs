//! The output of `status`, with Juju's derivations (`docs/hook-model.md` 7.5).

use std::collections::BTreeMap;

use periapt_host_api::{
    JUJU_VERSION, ModelUuid, Timestamp,
    status::{ControllerStatus, FullStatus, Life, ModelStatus, StatusText},
};

use crate::{
    application, machine, model, offer, relation,
    root::{ModelState, Root},
    storage,
};

pub(crate) mod shown;
pub(crate) mod summary;

/// The data that status shows besides the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusContext {
    /// The controller's current time.
    pub now: Timestamp,
    /// The milliseconds of the controller's monotonic clock, by which agents are alive or gone.
    pub lease_now_ms: u64,
    /// Periapt's version.
    pub version: String,
    /// The WebAssembly engine and its version.
    pub engine: String,
    /// The problems of the controller itself.
    pub problems: Vec<String>,
}

/// Returns the status of a model, if the model exists. The controllers of its log are not in the state.
pub fn full_status(root: &Root, model: &ModelUuid, context: &StatusContext) -> Option<FullStatus> {
    let state = root.model(model)?;
    let lease_now_ms = context.lease_now_ms;
    let machines = state
        .machines()
        .map(|machine| (machine.id.to_string(), machine::status::status(root, state, machine, lease_now_ms)));
    let applications = state.applications().map(|application| {
        (application.name.to_string(), application::status::status(root, state, application, lease_now_ms))
    });
    Some(FullStatus {
        model: self::model(root, state),
        machines: machines.collect(),
        applications: applications.collect(),
        remote_applications: offer::status::consumed(root, state, lease_now_ms),
        offers: offer::status::offers(root, state),
        relations: state
            .relations()
            .filter(|relation| relation.life != Life::Dead)
            .map(|found| relation::status::status(state, found))
            .collect(),
        storage: Some(storage::status::combined(state)),
        controller: ControllerStatus {
            timestamp: context.now,
            periapt_version: context.version.clone(),
            engine: context.engine.clone(),
            problems: context.problems.clone(),
            members: BTreeMap::new(),
            revision: None,
        },
    })
}

fn model(root: &Root, state: &ModelState) -> ModelStatus {
    let model = state.model();
    let current = match model.life {
        Life::Alive => "available",
        Life::Dying | Life::Dead => "destroying",
    };
    ModelStatus {
        name: model.name.to_string(),
        kind: "iaas".to_owned(),
        controller: root.controller().map(|controller| controller.name.clone()).unwrap_or_default(),
        cloud: "periapt".to_owned(),
        region: "default".to_owned(),
        version: JUJU_VERSION.to_owned(),
        model_status: StatusText {
            current: current.to_owned(),
            message: model::cleanup::waits_for(state).join(", "),
            since: Some(model.life_since),
            version: String::new(),
        },
    }
}
