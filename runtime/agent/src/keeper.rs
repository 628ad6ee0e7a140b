//! The keeper: one process with the connection and the credentials. It starts a runner for each model, and never
//! waits for one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{Digest, ModelUuid, agent::AgentAssignments};
use periapt_program::Preparation;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

mod addresses;
mod calls;
mod charms;
mod compile;
mod controller;
mod directories;
mod disk_space;
mod downloads;
mod egress;
mod error;
mod exec_sessions;
mod firewall;
mod follow;
mod held;
mod holding;
mod identity;
mod images;
mod ingress;
mod interfaces;
mod leases;
mod leases_alone;
mod local_units;
mod metrics_listener;
mod model;
mod neighbours;
mod peers;
mod places;
mod pods;
mod probe;
mod process;
mod process_handle;
mod registration;
mod relay;
mod replacement;
mod resources;
mod service;
mod suspects;
mod temporary;
#[cfg(test)]
mod tests;
mod unconfirmed;
mod workload_logs;
mod workloads;

pub use directories::DirectoryError;
pub use error::AgentError;
pub use firewall::{FirewallError, TooManyRules, try_firewall};
pub use identity::IdentityError;
pub use leases_alone::LeaseKeeper;
pub use probe::ControllerProbe;
pub use service::{AgentService, Handle};
pub use workloads::{end_pods, try_containers};

use controller::Controller;
use exec_sessions::ExecSessions;
use follow::{Assignments, Follow};
use model::{ModelKeeper, Shared};
use pods::PodStreams;
use registration::AgentRegistration;
use replacement::Replacement;
use workload_logs::LogOrders;

/// The time for runners to end when the agent stops. Then the agent ends without them.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The state of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentState {
    /// True if the agent is registered with the controller.
    pub registered: bool,
    /// The models that the agent manages.
    pub models: BTreeSet<ModelUuid>,
}

/// A model that this agent manages.
struct Managed {
    wanted: watch::Sender<BTreeSet<Digest>>,
    ended: CancellationToken,
    task: JoinHandle<()>,
    streams: PodStreams,
}

struct Keeper<C: Controller> {
    shared: Arc<Shared<C>>,
    models: BTreeMap<ModelUuid, Managed>,
    /// Tasks of former models that are ending.
    ending: JoinSet<()>,
    state: watch::Sender<AgentState>,
    replacement: Replacement<C>,
    logs: LogOrders,
    sessions: ExecSessions,
}

impl<C: Controller> Keeper<C> {
    async fn run(
        mut self,
        mut registration: AgentRegistration<C>,
        cancel: CancellationToken,
    ) -> Result<(), AgentError> {
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            registered = self.register(&mut registration) => registered?,
        }
        let mut assignments = Follow::new(Assignments(self.shared.controller.clone()));
        let mut first = true;
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                next = assignments.next() => {
                    if std::mem::take(&mut first) {
                        self.clean_up(&next).await;
                        let held = Arc::clone(self.shared.pods.held());
                        let models: BTreeSet<_> = next.models.keys().copied().collect();
                        self.ending.spawn(async move { held.end_others(&models).await });
                    }
                    let (target, within) = (next.program.clone(), next.program_within);
                    let (logs, sessions) = (next.logs.clone(), next.sessions.clone());
                    self.assign(next);
                    let (models, controller) = (&self.models, &self.shared.controller);
                    let streams =
                        |model: &ModelUuid| models.get(model).map(|managed| managed.streams.clone());
                    self.logs.follow(controller, logs, |order| streams(&order.model));
                    self.sessions.follow(controller, sessions, |order| streams(&order.model));
                    self.replacement.look(target.as_ref(), Duration::from_secs(within.into()));
                }
                prepared = self.replacement.prepared() => match prepared {
                    // It is tried once this agent has ended in order, and takes the pods over.
                    Preparation::Chosen => {
                        self.leave_pods();
                        break;
                    }
                    Preparation::Refused => {
                        registration.set_program(self.replacement.running());
                        tokio::select! {
                            () = cancel.cancelled() => break,
                            registered = self.register(&mut registration) => registered?,
                        }
                    }
                },
                () = registration.due() => tokio::select! {
                    () = cancel.cancelled() => break,
                    () = registration.report() => {}
                },
                Some(_) = self.ending.join_next() => {}
            }
        }
        if self.replacement.running().is_some_and(|program| program.trial) {
            self.leave_pods();
        }
        self.stop().await;
        Ok(())
    }

    /// Leaves all pods and their images to the next keeper.
    fn leave_pods(&self) {
        self.shared.pods.leave();
        if let Some(images) = &self.shared.images {
            images.keep_unused();
        }
    }

    /// Registers, and retries while the controller is away.
    async fn register(&self, registration: &mut AgentRegistration<C>) -> Result<(), AgentError> {
        registration.send().await.map_err(AgentError::Refused)?;
        self.state.send_modify(|state| state.registered = true);
        Ok(())
    }

    async fn clean_up(&self, assignments: &AgentAssignments) {
        let wanted = assignments.models.values().flat_map(|model| model.charms.iter().copied()).collect();
        if let Err(error) = self.shared.charms.keep_only(wanted).await {
            tracing::warn!(%error, "unused charms could not be deleted");
        }
        let models = assignments.models.keys().copied().collect();
        for directory in self.shared.directories.other_resources(&models) {
            forget_resources(directory).await;
        }
    }

    /// Starts the keepers of new models, and ends those of models that are not assigned any more.
    fn assign(&mut self, assignments: AgentAssignments) {
        let gone: Vec<_> =
            self.models.keys().filter(|model| !assignments.models.contains_key(model)).copied().collect();
        for model in gone {
            if let Some(managed) = self.models.remove(&model) {
                managed.ended.cancel();
                let resources = self.shared.directories.resources(&model);
                self.ending.spawn(async move {
                    // An error means that the task panicked, so it has ended, too.
                    let _ = managed.task.await;
                    // A model that has come back meanwhile fetches its resources again.
                    forget_resources(resources).await;
                });
            }
        }
        let wanted = assignments.models.values().flat_map(|model| model.charms.iter().copied()).collect();
        self.shared.charms.forget_others(&wanted);
        for (model, assignment) in assignments.models {
            let charms: BTreeSet<_> = assignment.charms.into_iter().collect();
            for charm in &charms {
                self.fetch_ahead(*charm);
            }
            match self.models.get(&model) {
                Some(managed) => managed.wanted.send_if_modified(|wanted| {
                    let differs = *wanted != charms;
                    *wanted = charms;
                    differs
                }),
                None => self.models.insert(model, self.manage(model, charms)).is_some(),
            };
        }
        let models = self.models.keys().copied().collect();
        if let Some(firewall) = &self.shared.firewall {
            firewall.assign(&models);
        }
        self.state.send_modify(|state| state.models = models);
    }

    /// Starts the keeper of a model. A model that comes back gets a new keeper at once, even if its last one has
    /// not ended: attaching revokes the old runner.
    fn manage(&self, model: ModelUuid, charms: BTreeSet<Digest>) -> Managed {
        let (wanted, ended) = (watch::Sender::new(charms), CancellationToken::new());
        let keeper = ModelKeeper::new(Arc::clone(&self.shared), model, wanted.subscribe(), ended.clone());
        let streams = keeper.streams();
        Managed { wanted, ended, task: tokio::spawn(keeper.run()), streams }
    }

    /// Fetches and compiles a charm before a unit requests it.
    fn fetch_ahead(&self, charm: Digest) {
        let charms = Arc::clone(&self.shared.charms);
        tokio::spawn(async move {
            if let Err(error) = charms.put_in_place(charm).await {
                tracing::debug!(charm = %charm.short(), %error, "a charm could not be fetched ahead");
            }
        });
    }

    async fn stop(mut self) {
        for managed in self.models.into_values() {
            managed.ended.cancel();
            self.ending.spawn(async move {
                let _ = managed.task.await;
            });
        }
        let all = async { while self.ending.join_next().await.is_some() {} };
        if tokio::time::timeout(STOPS_WITHIN, all).await.is_err() {
            tracing::warn!("runners did not end in time, and are killed");
        }
    }
}

/// Deletes the resources of a model that has left this agent.
async fn forget_resources(directory: PathBuf) {
    let shown = directory.display().to_string();
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || temporary::remove(&directory)).await {
        tracing::warn!(%error, directory = shown, "unused resources could not be deleted");
    }
}
