//! What operators ask of a model: each change of state is one command, evaluated by the single writer.

mod answer;
mod caller;
mod controller;
mod deploy;
mod selector;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    answer::{
        AgentSummary, Answer, CharmUploaded, CommandResult, CommandResults, Commands, ControllerInfo,
        ModelSummary, ResourceUploaded,
    },
    caller::Caller,
    controller::ControllerCommand,
    deploy::{Deploy, Exposure, RefreshWith},
    selector::{EndpointSelector, RelationSelector, SecretSelector},
};
use crate::{
    AgentName, ApplicationName, Digest, EndpointName, EventId, MachineId, RelationId, ResourceName,
    SpaceName, StorageId, TaskId, UnitName,
    action::EnqueueOperation,
    constraints::Constraints,
    network::{Bindings, Subnet},
    offer::OfferUrl,
    resource::ResourceUpload,
    secret::{Confidential, SecretData, SecretId, SecretRevision},
    ssh_key::SshKey,
    storage::{StorageDirectives, StorageEnd, UnitStorage},
};

/// Removal that does not wait for the thing's own agent for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Force {
    /// Seconds until it is removed without its agent; Juju's default is 60.
    pub max_wait: u32,
}

impl Default for Force {
    fn default() -> Self {
        Self { max_wait: 60 }
    }
}

/// Where a unit is to be placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// On an existing machine (`--to 3`).
    Machine(MachineId),
    /// On a new machine of this agent (`--to agent=NAME`).
    Agent(AgentName),
}

/// How a failed hook is dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResolveMode {
    /// Run the hook again.
    Retry,
    /// Take it as done.
    NoRetry,
}

/// A command of an operator to one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Makes an application, its peer relations and its first units.
    Deploy(Deploy),
    /// Changes an application's settings: all or none.
    SetConfig {
        /// Whose.
        application: ApplicationName,
        /// Values as text, read by the options' types.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// Options that go back to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Sets the application-level key `trust`.
    SetTrust {
        /// Whose.
        application: ApplicationName,
        /// The new value.
        trust: bool,
    },
    /// Says on which agents an application's new units are placed, and the memory of its hooks, in place of what was
    /// said before.
    SetConstraints {
        /// Whose.
        application: ApplicationName,
        /// What is asked.
        constraints: Constraints,
    },
    /// The same for applications that do not say it themselves.
    SetModelConstraints {
        /// What is asked.
        constraints: Constraints,
    },
    /// Tries at once to find a machine for a unit that could not be placed.
    RetryProvisioning {
        /// Which.
        unit: UnitName,
    },
    /// Adds units.
    AddUnits {
        /// To what.
        application: ApplicationName,
        /// How many, at least 1.
        count: u32,
        /// Where the first ones go; the rest is placed by the assigner.
        #[serde(default)]
        placement: Vec<Placement>,
        /// Detached storage that the unit takes over; only of one unit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attach_storage: Vec<StorageId>,
    },
    /// Removes a unit.
    RemoveUnit {
        /// Which.
        unit: UnitName,
        /// Do not wait for ever.
        #[serde(default)]
        force: Option<Force>,
        /// What becomes of its storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Removes an application with its units and relations.
    RemoveApplication {
        /// Which.
        application: ApplicationName,
        /// Do not wait for ever.
        #[serde(default)]
        force: Option<Force>,
        /// What becomes of its units' storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Relates two applications.
    Integrate {
        /// One end.
        first: EndpointSelector,
        /// The other.
        second: EndpointSelector,
        /// Where the traffic of this side's units comes from, if not from where the model says; only of a relation
        /// with what another model offers.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        via: Vec<Subnet>,
    },
    /// Removes a relation.
    RemoveRelation {
        /// Which.
        relation: RelationSelector,
        /// Do not wait for ever.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Suspends a relation with an offer of this model: the units of both sides leave it, and it stays.
    SuspendRelation {
        /// Which.
        relation: RelationId,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Takes that back.
    ResumeRelation {
        /// Which.
        relation: RelationId,
    },
    /// Offers endpoints of an application to other models; an offer of that name offers these from now on.
    Offer {
        /// Which.
        application: ApplicationName,
        /// Its endpoints, at least one.
        endpoints: BTreeSet<EndpointName>,
        /// The offer's name; none: the application's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<ApplicationName>,
        /// For people; none: the charm's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    /// Removes an offer.
    RemoveOffer {
        /// Which.
        offer: ApplicationName,
        /// Also with relations, which are removed with it, without waiting for their units for ever.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Makes an offer of another model known in this one, so that applications can be related to it.
    Consume {
        /// Which.
        offer: OfferUrl,
        /// Its name in this model; none: the offer's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        application: Option<ApplicationName>,
    },
    /// Removes a consumed offer with its relations.
    RemoveSaas {
        /// Its name in this model.
        application: ApplicationName,
        /// Do not wait for ever.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Removes a machine without units.
    RemoveMachine {
        /// Which.
        machine: MachineId,
        /// Remove its units, too, and do not wait for ever.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Makes an application's ports reachable from outside.
    Expose {
        /// Which.
        application: ApplicationName,
        /// Endpoints and whom their ports are for; none: all ports are for everybody.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        endpoints: BTreeMap<String, Exposure>,
    },
    /// Takes that back.
    Unexpose {
        /// Which.
        application: ApplicationName,
        /// Only of these; none: of all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<String>,
    },
    /// Makes a space of some subnets, which leave the spaces that they were in.
    AddSpace {
        /// Its name.
        name: SpaceName,
        /// What is in it.
        #[serde(default)]
        subnets: Vec<Subnet>,
    },
    /// Moves subnets to a space; to `alpha`: out of all others.
    MoveToSpace {
        /// Which.
        space: SpaceName,
        /// What comes to be in it.
        subnets: Vec<Subnet>,
    },
    /// Gives a space another name; what is bound to it, or exposed to it, stays so.
    RenameSpace {
        /// Which.
        name: SpaceName,
        /// Its new name.
        to: SpaceName,
    },
    /// Removes a space that nothing is bound to.
    RemoveSpace {
        /// Which.
        name: SpaceName,
    },
    /// Binds endpoints of an application to spaces; those that are not named stay as they are.
    Bind {
        /// Which.
        application: ApplicationName,
        /// To what.
        bindings: Bindings,
    },
    /// Gives an application another charm.
    Refresh {
        /// Which.
        application: ApplicationName,
        /// An uploaded charm.
        charm: Digest,
        /// Also out of a hook error, past the new charm's limits (U-35, U-37), and where the model has not what it assumes.
        #[serde(default)]
        force: bool,
        /// What is changed with it.
        #[serde(default, skip_serializing_if = "RefreshWith::is_empty")]
        with: RefreshWith,
    },
    /// Gives a resource of an application new content; its units run upgrade-charm.
    AttachResource {
        /// Whose.
        application: ApplicationName,
        /// Which.
        resource: ResourceName,
        /// What was uploaded.
        upload: ResourceUpload,
    },
    /// Gives a unit more storage.
    AddStorage {
        /// Which.
        unit: UnitName,
        /// What.
        storage: StorageDirectives,
    },
    /// Attaches detached storage to a unit of the agent that it lies on.
    AttachStorage {
        /// To which.
        unit: UnitName,
        /// What.
        storage: StorageId,
    },
    /// Takes storage from its unit; it stays in the model.
    DetachStorage {
        /// What.
        storage: StorageId,
        /// Do not wait for ever for the unit's hook.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Removes storage that is attached to no unit.
    RemoveStorage {
        /// What.
        storage: StorageId,
        /// What becomes of its files.
        end: StorageEnd,
        /// Also if it is attached, and without waiting for ever.
        #[serde(default)]
        force: Option<Force>,
    },
    /// Answers a unit's failed hook.
    Resolve {
        /// Which.
        unit: UnitName,
        /// How.
        mode: ResolveMode,
    },
    /// Runs an action on some units, once each.
    EnqueueOperation(EnqueueOperation),
    /// Cancels a task that is pending, or stops one that runs.
    CancelTask {
        /// Which.
        task: TaskId,
    },
    /// Takes an event back that a unit asked to be told later.
    CancelEvent {
        /// Whose.
        unit: UnitName,
        /// Which.
        event: EventId,
    },
    /// Makes a secret of the model's users.
    AddSecret {
        /// Its id, which the controller draws.
        #[serde(skip)]
        id: Option<SecretId>,
        /// Its name, unique among the model's own secrets.
        name: String,
        /// What it holds.
        content: Confidential<SecretData>,
        /// For people.
        #[serde(default)]
        description: String,
    },
    /// Changes a secret of the model's users; what is none stays.
    UpdateSecret {
        /// Which.
        secret: SecretSelector,
        /// A new revision, if it differs from the latest.
        #[serde(default)]
        content: Option<Confidential<SecretData>>,
        /// A new name.
        #[serde(default)]
        name: Option<String>,
        /// For people.
        #[serde(default)]
        description: Option<String>,
        /// Whether revisions that nobody reads any more go by themselves.
        #[serde(default)]
        auto_prune: Option<bool>,
    },
    /// Lets the units of applications read a secret of the model's users.
    GrantSecret {
        /// Which.
        secret: SecretSelector,
        /// Whose units.
        applications: Vec<ApplicationName>,
    },
    /// Takes that back.
    RevokeSecret {
        /// Which.
        secret: SecretSelector,
        /// Whose units.
        applications: Vec<ApplicationName>,
    },
    /// Removes a secret of the model's users, or one revision of it.
    RemoveSecret {
        /// Which.
        secret: SecretSelector,
        /// Only this one; the secret goes with its last.
        #[serde(default)]
        revision: Option<SecretRevision>,
    },
    /// Keeps public keys of people; they have no effect.
    AddSshKeys {
        /// The keys; one that is kept already is refused.
        keys: Vec<SshKey>,
    },
    /// Forgets public keys.
    RemoveSshKeys {
        /// By fingerprint, comment or the key itself.
        keys: Vec<String>,
    },
    /// Changes model configuration; values as text.
    SetModelConfig {
        /// By key.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// Keys that go back to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
}
