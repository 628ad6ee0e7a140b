//! What operators ask of a model: each change of state is one command, evaluated by the single writer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, CharmDigest, EndpointName, EventId, MachineId, ModelName, ModelUuid,
    NameError, RelationId, ResourceName, SpaceName, StorageId, TagName, TaskId, Timestamp, UnitName,
    UserName,
    action::{EnqueueOperation, EnqueuedOperation, TaskStatus},
    cloud::Keep,
    constraints::Constraints,
    network::{Bindings, Subnet},
    offer::OfferUrl,
    problem::Refusal,
    relation::Endpoint,
    resource::ResourceUpload,
    secret::{Confidential, SecretData, SecretId, SecretRevision, SecretUri},
    ssh_key::SshKey,
    storage::{StorageDirectives, StorageEnd, UnitStorage},
};

/// Who asks. An argument of every command from the first day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// A person, or a program that acts for one.
    User(UserName),
    /// An agent's keeper, for itself.
    Agent(AgentName),
    /// The runner of one model, as its agent's keeper stamps it.
    Runner {
        /// The agent.
        agent: AgentName,
        /// The runner's model.
        model: ModelUuid,
    },
    /// One of the controller's own workers.
    Worker,
}

/// A command to the controller that is about no existing model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerCommand {
    /// Makes a model.
    AddModel {
        /// Its name, unique among the owner's models.
        name: ModelName,
        /// What is set from the start, by key, as text.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        config: BTreeMap<String, String>,
    },
    /// Changes what holds in all models that do not set it themselves; values as text.
    SetModelDefaults {
        /// By key.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// Keys that go back to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Destroys a model and all in it.
    DestroyModel {
        /// Which.
        model: ModelUuid,
        /// Do not wait for units to wind up.
        #[serde(default)]
        force: Option<Force>,
        /// What becomes of storage; to be said if there is any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage: Option<StorageEnd>,
    },
    /// Keeps or forgets what has no effect.
    Keep(Keep),
}

impl ControllerCommand {
    /// Makes a model that sets nothing.
    pub fn add_model(name: ModelName) -> Self {
        Self::AddModel { name, config: BTreeMap::new() }
    }
}

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

/// An endpoint as a person names it: `APPLICATION` or `APPLICATION:ENDPOINT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointSelector {
    /// The application.
    pub application: ApplicationName,
    /// The endpoint; none: whichever fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointName>,
}

impl FromStr for EndpointSelector {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        let (application, endpoint) = match text.split_once(':') {
            Some((application, endpoint)) => (application, Some(endpoint)),
            None => (text, None),
        };
        Ok(Self {
            application: ApplicationName::new(application)?,
            endpoint: endpoint.map(EndpointName::new).transpose()?,
        })
    }
}

/// `APPLICATION` or `APPLICATION:ENDPOINT`.
impl fmt::Display for EndpointSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Some(endpoint) => write!(f, "{}:{endpoint}", self.application),
            None => self.application.fmt(f),
        }
    }
}

/// Which relation is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationSelector {
    /// By number.
    Id(RelationId),
    /// By its ends.
    Endpoints(EndpointSelector, EndpointSelector),
}

/// A secret as a person names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSelector {
    /// By its id.
    Id(SecretId),
    /// By its name, of a secret of the model's users.
    Name(String),
}

/// What reads as an id or a URI is one; anything else is a name.
impl From<&str> for SecretSelector {
    fn from(text: &str) -> Self {
        match text.parse::<SecretUri>() {
            Ok(uri) => Self::Id(uri.id),
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

/// The id or the name.
impl fmt::Display for SecretSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
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
        charm: CharmDigest,
        /// Also out of a hook error, and past the new charm's limits (U-35, U-37).
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

/// What `deploy` makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Deploy {
    /// An uploaded charm.
    pub charm: CharmDigest,
    /// The application's name; none: the charm's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationName>,
    /// How many units; 0 for subordinates.
    pub units: u32,
    /// Settings as text, read by the options' types.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Where the first units go.
    #[serde(default)]
    pub placement: Vec<Placement>,
    /// What storage each unit gets, where it is to be other than the charm declares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// Detached storage that the unit takes over; only of one unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attach_storage: Vec<StorageId>,
    /// On which agents units are placed, and the memory of hooks.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Whether the application is trusted.
    #[serde(default)]
    pub trust: bool,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// The first content of its resources; the others have none until it is attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
}

/// What of an application is changed with its charm: all of it or nothing, before any unit sees the new one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct RefreshWith {
    /// Settings as text, read by the new charm's options.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// What storage units get from now on, where it is to be other than the new charm declares.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// Content of resources.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
    /// Trust the application from now on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
}

impl RefreshWith {
    /// Whether the charm alone is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whom the ports of an exposed endpoint are for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Exposure {
    /// Addresses; if there are neither these nor spaces: everybody.
    pub cidrs: BTreeSet<Subnet>,
    /// All in these spaces, as they change.
    pub spaces: BTreeSet<SpaceName>,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// There is nothing to tell.
    Done,
    /// A model was made.
    Model {
        /// For ever.
        uuid: ModelUuid,
    },
    /// An application was made.
    Application {
        /// Its name.
        name: ApplicationName,
        /// Its first units.
        units: Vec<UnitName>,
    },
    /// Units were added.
    Units {
        /// Their names.
        units: Vec<UnitName>,
    },
    /// Storage was added.
    Storage {
        /// The new instances.
        storage: Vec<StorageId>,
    },
    /// A resource has the content that was attached.
    Resource {
        /// Which revision that is.
        revision: u64,
        /// Whether it is a new one: the same content again is none.
        fresh: bool,
    },
    /// A relation was made.
    Relation {
        /// Its number.
        id: RelationId,
        /// Its ends.
        endpoints: Vec<Endpoint>,
    },
    /// Endpoints are offered.
    Offer {
        /// How other models name the offer.
        url: OfferUrl,
    },
    /// An offer is known in this model.
    Consumed {
        /// By this name.
        application: ApplicationName,
        /// Which.
        url: OfferUrl,
    },
    /// An action will run.
    Operation(EnqueuedOperation),
    /// A task was cancelled, or is being stopped.
    Task {
        /// Which.
        id: TaskId,
        /// Cancelled or aborting.
        status: TaskStatus,
    },
    /// A secret was made, or is there.
    Secret {
        /// Its id.
        id: SecretId,
    },
    /// Something is on its way out, or gone.
    Removal {
        /// Whether it is gone already.
        gone: bool,
        /// What it waits for else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<String>,
    },
}

/// The result of one command in a bulk call: as many and in the same order as the commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandResult<T> {
    /// It happened.
    Ok(T),
    /// Nothing of it happened.
    Error(Refusal),
}

impl<T> From<Result<T, Refusal>> for CommandResult<T> {
    fn from(result: Result<T, Refusal>) -> Self {
        match result {
            Ok(answer) => Self::Ok(answer),
            Err(refusal) => Self::Error(refusal),
        }
    }
}

impl<T> From<CommandResult<T>> for Result<T, Refusal> {
    fn from(result: CommandResult<T>) -> Self {
        match result {
            CommandResult::Ok(answer) => Ok(answer),
            CommandResult::Error(refusal) => Err(refusal),
        }
    }
}

/// `POST /v1/models/MODEL/commands`: each stands by itself; one that is refused does not stop the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Commands<C> {
    /// In order.
    pub commands: Vec<C>,
}

/// The answer to [`Commands`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CommandResults<T> {
    /// One for each command, in the same order.
    pub results: Vec<CommandResult<T>>,
    /// The revision at which all of this can be read.
    pub revision: crate::Revision,
}

/// A model in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelSummary {
    /// For ever.
    pub uuid: ModelUuid,
    /// Name.
    pub name: ModelName,
    /// Who made it.
    pub owner: UserName,
    /// Life.
    pub life: crate::status::Life,
    /// Since when it is as alive as it is.
    pub life_since: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Applications in it.
    pub applications: u32,
    /// Units in it.
    pub units: u32,
    /// Machines in it.
    pub machines: u32,
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentSummary {
    /// Name.
    pub name: AgentName,
    /// Whether it is connected.
    pub alive: bool,
    /// Addresses, the preferred first.
    pub addresses: Vec<String>,
    /// Where its host stands; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// Words by which units are placed on it.
    #[serde(default)]
    pub tags: BTreeSet<TagName>,
    /// Its version.
    pub version: String,
    /// Machines that it hosts, over all models.
    pub machines: u32,
    /// Units that it runs, over all models.
    pub units: u32,
    /// When it was last heard of.
    pub last_seen: Option<Timestamp>,
}

/// `GET /v1/controller`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerInfo {
    /// The controller's name.
    pub name: String,
    /// For ever.
    pub uuid: uuid::Uuid,
    /// Periapt's version.
    pub version: String,
    /// The engine that hooks run in, and its version.
    pub engine: String,
    /// The store.
    pub store: crate::StoreId,
    /// Where it is.
    pub revision: crate::Revision,
    /// Whether writes are accepted now.
    pub writable: bool,
}

/// The answer to an upload of a charm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmUploaded {
    /// By this it is deployed.
    pub digest: CharmDigest,
    /// What it declares.
    pub meta: crate::charm::CharmMeta,
}

/// The answer to an upload of a resource's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUploaded {
    /// By this it is attached.
    pub digest: CharmDigest,
    /// Bytes that came.
    pub size: u64,
}
