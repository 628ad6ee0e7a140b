//! The commands of operators to a model. Each change of state is one command, and the single writer evaluates it.

mod answer;
mod caller;
mod controller;
mod deploy;
mod result;
mod selector;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    answer::{
        AgentSummary, Answer, CharmUploaded, ControllerInfo, FailingWorker, LogUse, MemberInfo, MemberRole,
        ModelSummary, ResourceUploaded,
    },
    caller::Caller,
    controller::ControllerCommand,
    deploy::{Deploy, Exposure, RefreshWith},
    result::{CommandResult, CommandResults, Commands},
    selector::{EndpointSelector, RelationSelector, SecretSelector},
};
use crate::{
    AgentName, ApplicationName, Digest, EndpointName, EventId, MachineId, RelationId, ResourceName,
    SpaceName, StorageId, TaskId, UnitName, UserName,
    access::ModelAccess,
    action::EnqueueOperation,
    constraints::Constraints,
    network::{Bindings, Subnet},
    offer::OfferUrl,
    resource::ResourceUpload,
    secret::{Confidential, SecretData, SecretId, SecretRevision},
    ssh_key::SshKey,
    storage::{StorageDirectives, StorageEnd, UnitStorage},
};

/// Permission to remove an entity without its agent after a bounded wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Force {
    /// The seconds to wait for the agent before the entity is removed without it; Juju's default is 60.
    pub max_wait: u32,
}

impl Default for Force {
    fn default() -> Self {
        Self { max_wait: 60 }
    }
}

/// A placement of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// An existing machine (`--to 3`).
    Machine(MachineId),
    /// A new machine of this agent (`--to agent=NAME`).
    Agent(AgentName),
}

/// The operator's answer to a failed hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveMode {
    /// Runs the hook again.
    Retry,
    /// Counts the hook as done.
    NoRetry,
}

/// A command of an operator to one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Makes an application, its peer relations and its first units.
    Deploy(Deploy),
    /// Changes an application's settings, all or none.
    SetConfig {
        /// The application.
        application: ApplicationName,
        /// Values as text, parsed by the types of the options.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// The options to reset to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Sets the application-level key `trust`.
    SetTrust {
        /// The application.
        application: ApplicationName,
        /// The new value.
        trust: bool,
    },
    /// Replaces an application's constraints: the agents for its new units and the memory of its hooks.
    SetConstraints {
        /// The application.
        application: ApplicationName,
        /// The new constraints.
        constraints: Constraints,
    },
    /// Replaces the model's constraints, the defaults of its applications.
    SetModelConstraints {
        /// The new constraints.
        constraints: Constraints,
    },
    /// Retries at once to place a unit that fits no machine.
    RetryProvisioning {
        /// The unit.
        unit: UnitName,
    },
    /// Adds units.
    AddUnits {
        /// The application.
        application: ApplicationName,
        /// The number of units, at least 1.
        count: u32,
        /// The placements of the first units; the assigner places the rest.
        #[serde(default)]
        placement: Vec<Placement>,
        /// Detached storage to attach to the new unit; allowed for a single unit only.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attach_storage: Vec<StorageId>,
    },
    /// Removes a unit.
    RemoveUnit {
        /// The unit.
        unit: UnitName,
        /// Bounds the wait for the unit's agent.
        #[serde(default)]
        force: Option<Force>,
        /// The treatment of the unit's storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Removes an application with its units and relations.
    RemoveApplication {
        /// The application.
        application: ApplicationName,
        /// Bounds the wait for the units' agents.
        #[serde(default)]
        force: Option<Force>,
        /// The treatment of the units' storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Relates two applications.
    Integrate {
        /// One end.
        first: EndpointSelector,
        /// The other end.
        second: EndpointSelector,
        /// The subnets from which the units of this side send traffic, in place of the model's; allowed only for a
        /// relation with an offer of another model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        via: Vec<Subnet>,
    },
    /// Removes a relation.
    RemoveRelation {
        /// The relation.
        relation: RelationSelector,
        /// Bounds the wait for the units' agents.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Suspends a relation with an offer of this model: the units of both sides leave it, and the relation stays.
    SuspendRelation {
        /// The relation.
        relation: RelationId,
        /// The reason, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Resumes a suspended relation.
    ResumeRelation {
        /// The relation.
        relation: RelationId,
    },
    /// Offers endpoints of an application to other models. An existing offer of the same name gets these endpoints.
    Offer {
        /// The application.
        application: ApplicationName,
        /// The offered endpoints, at least one.
        endpoints: BTreeSet<EndpointName>,
        /// The offer's name; none means the application's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<ApplicationName>,
        /// A description for people; none means the charm's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Removes an offer.
    RemoveOffer {
        /// The offer's name.
        offer: ApplicationName,
        /// Removes the offer's relations as well, and bounds the wait for their units.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Consumes an offer of another model, so that applications of this model can integrate with it.
    Consume {
        /// The offer.
        offer: OfferUrl,
        /// The name of the offer in this model; none means the offer's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        application: Option<ApplicationName>,
    },
    /// Removes a consumed offer with its relations.
    RemoveSaas {
        /// The name of the offer in this model.
        application: ApplicationName,
        /// Bounds the wait for the units' agents.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Removes a machine without units.
    RemoveMachine {
        /// The machine.
        machine: MachineId,
        /// Removes the machine's units as well, and bounds the wait for their agents.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Exposes an application: makes its open ports reachable from outside.
    Expose {
        /// The application.
        application: ApplicationName,
        /// The endpoints to expose and their sources; empty exposes all ports to all sources.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        endpoints: BTreeMap<String, Exposure>,
    },
    /// Ends the exposure of an application.
    Unexpose {
        /// The application.
        application: ApplicationName,
        /// The endpoints to unexpose; empty means all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<String>,
    },
    /// Makes a space of subnets, which leave their previous spaces.
    AddSpace {
        /// The space's name.
        name: SpaceName,
        /// The space's subnets.
        #[serde(default)]
        subnets: Vec<Subnet>,
    },
    /// Moves subnets to a space. Moving them to `alpha` takes them out of all other spaces.
    MoveToSpace {
        /// The space.
        space: SpaceName,
        /// The subnets to move.
        subnets: Vec<Subnet>,
    },
    /// Renames a space; bindings and exposures to it stay.
    RenameSpace {
        /// The present name.
        name: SpaceName,
        /// The new name.
        to: SpaceName,
    },
    /// Removes a space without bindings.
    RemoveSpace {
        /// The space.
        name: SpaceName,
    },
    /// Binds endpoints of an application to spaces; endpoints that are not named keep their bindings.
    Bind {
        /// The application.
        application: ApplicationName,
        /// The bindings to set.
        bindings: Bindings,
    },
    /// Replaces an application's charm.
    Refresh {
        /// The application.
        application: ApplicationName,
        /// The digest of an uploaded charm.
        charm: Digest,
        /// Upgrades units in hook error as well, and skips the checks of the new charm's limits (U-35, U-37) and
        /// `assumes`.
        #[serde(default)]
        force: bool,
        /// Further changes of the application, made together with the charm.
        #[serde(default, skip_serializing_if = "RefreshWith::is_empty")]
        with: RefreshWith,
    },
    /// Gives a resource of an application new content; the application's units run upgrade-charm.
    AttachResource {
        /// The application.
        application: ApplicationName,
        /// The resource.
        resource: ResourceName,
        /// The uploaded content.
        upload: ResourceUpload,
    },
    /// Adds storage to a unit.
    AddStorage {
        /// The unit.
        unit: UnitName,
        /// The storage to add.
        storage: StorageDirectives,
    },
    /// Attaches detached storage to a unit on the agent that holds the storage.
    AttachStorage {
        /// The unit.
        unit: UnitName,
        /// The storage instance.
        storage: StorageId,
    },
    /// Detaches storage from its unit; the storage stays in the model.
    DetachStorage {
        /// The storage instance.
        storage: StorageId,
        /// Bounds the wait for the unit's hook.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Removes detached storage.
    RemoveStorage {
        /// The storage instance.
        storage: StorageId,
        /// The treatment of the storage's files.
        end: StorageEnd,
        /// Removes attached storage as well, and bounds the wait for the unit's hook.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Resolves a unit's failed hook.
    Resolve {
        /// The unit.
        unit: UnitName,
        /// The answer to the failed hook.
        mode: ResolveMode,
    },
    /// Enqueues one task of an action for each of some units.
    EnqueueOperation(EnqueueOperation),
    /// Cancels a pending task, or stops a running one.
    CancelTask {
        /// The task.
        task: TaskId,
    },
    /// Cancels a pending event of a unit.
    CancelEvent {
        /// The unit.
        unit: UnitName,
        /// The event.
        event: EventId,
    },
    /// Makes a secret that the model's users own.
    AddSecret {
        /// The secret's id, drawn by the controller.
        #[serde(skip)]
        id: Option<SecretId>,
        /// The secret's name, unique among the secrets of the model's users.
        name: String,
        /// The content.
        content: Confidential<SecretData>,
        /// A description for people.
        #[serde(default)]
        description: String,
    },
    /// Changes a secret that the model's users own; fields that are none keep their values.
    UpdateSecret {
        /// The secret.
        secret: SecretSelector,
        /// The content, which makes a new revision if it differs from the latest.
        #[serde(default)]
        content: Option<Confidential<SecretData>>,
        /// The new name.
        #[serde(default)]
        name: Option<String>,
        /// The new description, for people.
        #[serde(default)]
        description: Option<String>,
        /// True to prune revisions that no unit reads any more.
        #[serde(default)]
        auto_prune: Option<bool>,
    },
    /// Grants units of applications access to a secret that the model's users own.
    GrantSecret {
        /// The secret.
        secret: SecretSelector,
        /// The applications whose units get access.
        applications: Vec<ApplicationName>,
    },
    /// Revokes such grants.
    RevokeSecret {
        /// The secret.
        secret: SecretSelector,
        /// The applications whose units lose access.
        applications: Vec<ApplicationName>,
    },
    /// Removes a secret that the model's users own, or one revision of it.
    RemoveSecret {
        /// The secret.
        secret: SecretSelector,
        /// The revision to remove; the secret goes with its last revision. None removes the whole secret.
        #[serde(default)]
        revision: Option<SecretRevision>,
    },
    /// Stores public SSH keys; they have no effect.
    AddSshKeys {
        /// The keys; a key that is already stored is refused.
        keys: Vec<SshKey>,
    },
    /// Removes public SSH keys.
    RemoveSshKeys {
        /// The keys, each named by fingerprint, comment or the key itself.
        keys: Vec<String>,
    },
    /// Changes model configuration.
    SetModelConfig {
        /// Values as text, by key.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// The keys to reset to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Grants a user access to the model.
    GrantModel {
        /// The user.
        user: UserName,
        /// The access level.
        access: ModelAccess,
    },
    /// Revokes a user's access to the model; the next lower level stays.
    RevokeModel {
        /// The user.
        user: UserName,
        /// The access level.
        access: ModelAccess,
    },
}

impl Command {
    /// Returns true if the command sets or resets a key in the configuration of the model or of an application.
    pub fn changes_key(&self, key: &str) -> bool {
        match self {
            Self::SetConfig { set, reset, .. } | Self::SetModelConfig { set, reset } => {
                set.contains_key(key) || reset.iter().any(|name| name == key)
            }
            Self::Deploy(deploy) => deploy.config.contains_key(key),
            Self::Refresh { with, .. } => with.config.contains_key(key),
            _ => false,
        }
    }
}
