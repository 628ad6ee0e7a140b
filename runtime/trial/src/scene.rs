//! What a hook is tried in, as whoever writes tests thinks of it. All that is not said is as a fresh unit finds it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    path::PathBuf,
    str::FromStr,
};

use periapt_host_api::{
    ApplicationName, EndpointName, ModelName, ModelUuid, RelationId, ResourceName, StorageId, Timestamp,
    UnitName,
    action::Parameters,
    budget::{BudgetError, BudgetKey, BudgetSettings},
    charm::{CharmMeta, StorageMeta},
    network::{Bindings, HostInterface, Spaces},
    ports::PortRange,
    relation::Settings,
    secret::{ContentError, RotatePolicy, SecretId, SecretOwner, SecretReader, SecretRevision},
    settings::SettingError,
    status::{Life, WorkloadStatus},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) mod check;
pub(crate) mod event;
pub(crate) mod view;

pub use event::{BatchScene, EventKind, EventScene};

/// A unit, what is due for it, and all of the model that it may see.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scene {
    /// The unit whose hook it is; its application is the charm's.
    pub unit: UnitName,
    /// What it is told.
    pub event: EventScene,
    /// 1 for the first attempt.
    #[serde(default = "first")]
    pub attempt: u32,
    /// Whether it leads its application.
    #[serde(default)]
    pub leader: bool,
    /// The model.
    #[serde(default)]
    pub model: ModelScene,
    /// Options that were set, as JSON; the charm's defaults stand for the rest.
    #[serde(default)]
    pub config: BTreeMap<String, Value>,
    /// Relations, of all endpoints.
    #[serde(default)]
    pub relations: Vec<RelationScene>,
    /// Secrets that the unit owns, or may read.
    #[serde(default)]
    pub secrets: Vec<SecretScene>,
    /// Storage that the unit has.
    #[serde(default)]
    pub storages: Vec<StorageScene>,
    /// Files that were attached, by the names of resources: where they lie on this host.
    #[serde(default)]
    pub resources: BTreeMap<ResourceName, PathBuf>,
    /// What the charm stored for the unit.
    #[serde(default)]
    pub state: BTreeMap<String, String>,
    /// What the unit has open, for all endpoints.
    #[serde(default)]
    pub ports: BTreeSet<PortRange>,
    /// The host's addresses, the preferred first.
    #[serde(default = "addresses")]
    pub addresses: Vec<String>,
    /// The host's interfaces; none: the addresses alone are known.
    #[serde(default)]
    pub interfaces: Vec<HostInterface>,
    /// Which subnets are in which space.
    #[serde(default)]
    pub spaces: Spaces,
    /// The spaces that endpoints are bound to.
    #[serde(default)]
    pub bindings: Bindings,
    /// How many units the application is to have, this one included.
    #[serde(default = "first")]
    pub planned_units: u32,
    /// What the unit's charm said last.
    #[serde(default)]
    pub unit_status: StatusScene,
    /// What the leader said last of the application; none: nothing.
    #[serde(default)]
    pub application_status: Option<StatusScene>,
    /// The principal, of a subordinate.
    #[serde(default)]
    pub principal: Option<UnitName>,
    /// May be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// Parameters of the action that the event runs, as the charm is told them.
    #[serde(default)]
    pub parameters: Parameters,
    /// What the hook may use, as `model-config` takes it (`"hook-cpu-budget": "5s"`); the defaults stand for the rest.
    #[serde(default)]
    pub budgets: BTreeMap<BudgetKey, String>,
    /// The time that the hook sees; none: the host's.
    #[serde(default)]
    pub now: Option<Timestamp>,
    /// 64 hex digits, from which all of the hook's randomness comes; none: drawn anew.
    #[serde(default)]
    pub seed: Option<String>,
}

impl Scene {
    /// What was said of budgets.
    ///
    /// # Errors
    /// [`SceneError::Budget`]
    pub(crate) fn budget_settings(&self) -> Result<BudgetSettings, SceneError> {
        let mut settings = BudgetSettings::default();
        self.budgets.iter().try_for_each(|(key, text)| settings.set(*key, text))?;
        Ok(settings)
    }
}

fn first() -> u32 {
    1
}

fn addresses() -> Vec<String> {
    vec!["192.0.2.1".to_owned()]
}

/// The model of a scene.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ModelScene {
    /// Its name.
    pub name: ModelName,
    /// Its UUID.
    pub uuid: ModelUuid,
}

impl Default for ModelScene {
    fn default() -> Self {
        Self { name: constant("trial"), uuid: constant("00000000-0000-4000-8000-000000000001") }
    }
}

/// A name that nobody gives from outside.
#[expect(clippy::expect_used, reason = "its callers pass literals, and each test of a scene passes them all")]
fn constant<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("a literal of the right form")
}

/// A relation as the unit has it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RelationScene {
    /// Its number.
    pub id: RelationId,
    /// The charm's endpoint.
    pub endpoint: EndpointName,
    /// The application at the other end; a peer relation has none.
    #[serde(default)]
    pub remote_application: Option<ApplicationName>,
    /// The model at the other end, if it is another one.
    #[serde(default)]
    pub remote_model: Option<ModelUuid>,
    /// Dying in its last hooks.
    #[serde(default)]
    pub life: Life,
    /// What the unit wrote.
    #[serde(default)]
    pub unit_settings: Settings,
    /// What its application's leader wrote.
    #[serde(default)]
    pub application_settings: Settings,
    /// What the remote application's leader wrote.
    #[serde(default)]
    pub remote_settings: Settings,
    /// The members that the unit was told of, with what they wrote.
    #[serde(default)]
    pub members: BTreeMap<UnitName, Settings>,
    /// Members that left, and whose settings can still be read.
    #[serde(default)]
    pub former_members: BTreeMap<UnitName, Settings>,
}

/// A secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretScene {
    /// Its id.
    pub id: SecretId,
    /// Whose it is.
    pub owner: SecretOwner,
    /// Content of each revision that is there; the highest is the latest.
    pub revisions: BTreeMap<SecretRevision, BTreeMap<String, String>>,
    /// The owner's label.
    #[serde(default)]
    pub label: Option<String>,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// How often it is to be rotated.
    #[serde(default)]
    pub rotate: RotatePolicy,
    /// When the latest revision expires.
    #[serde(default)]
    pub expire: Option<Timestamp>,
    /// To whom it is granted, and through which relation. Whoever is not its owner reads it by a grant to its unit or
    /// application.
    #[serde(default)]
    pub grants: BTreeMap<SecretReader, Option<RelationId>>,
    /// The revision that the unit reads until it refreshes; none: it has not read it yet.
    #[serde(default)]
    pub tracked: Option<SecretRevision>,
    /// The unit's own label for it.
    #[serde(default)]
    pub consumer_label: Option<String>,
}

/// Storage of the unit.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StorageScene {
    /// Which, such as `data/0`.
    pub id: StorageId,
    /// The directory on this host that holds what is in it. Hooks change it.
    pub directory: PathBuf,
}

/// A status.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatusScene {
    /// The status.
    pub status: WorkloadStatus,
    /// For people.
    #[serde(default)]
    pub message: String,
}

impl Default for StatusScene {
    fn default() -> Self {
        Self { status: WorkloadStatus::Unknown, message: String::new() }
    }
}

/// A scene in which the charm's hook cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// It names what the charm does not declare.
    #[error("the charm has no {what} {name:?}")]
    Undeclared {
        /// `endpoint`, `endpoint or extra binding`, `storage`, `resource`, `action`.
        what: &'static str,
        /// As the scene has it.
        name: String,
    },
    /// An option has a value that it cannot have.
    #[error("config: {0}")]
    Config(#[from] SettingError),
    /// An option is no text, number or truth value.
    #[error("config: option {0:?} is a list or an object; options are text, numbers or truth values")]
    OptionShape(String),
    /// Parts that contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A secret's content that no secret can have.
    #[error("secret {id}: {reason}")]
    Secret {
        /// Which.
        id: SecretId,
        /// What is wrong.
        reason: ContentError,
    },
    /// A file or directory of this host that cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// Which.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A budget that none can be set to.
    #[error("budgets: {0}")]
    Budget(#[from] BudgetError),
    /// A seed that is none.
    #[error("the seed is not 64 hex digits")]
    Seed,
}

/// A storage of a scene as the charm declares it.
pub(crate) fn declared<'m>(meta: &'m CharmMeta, id: &StorageId) -> Result<&'m StorageMeta, SceneError> {
    let undeclared = || SceneError::Undeclared { what: "storage", name: id.name().to_string() };
    meta.storage.get(id.name()).ok_or_else(undeclared)
}
