//! The world of a trial, as authors of tests write it. Parts that are left out are as for a fresh unit.

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

pub use event::{BatchScene, EventKind, EventScene, NoticeScene};

/// A unit, its event, and the part of the model that it may see.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scene {
    /// The unit that runs the hook; its application is the charm's.
    pub unit: UnitName,
    /// The event of the hook.
    pub event: EventScene,
    /// The number of the attempt, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// True if the unit leads its application.
    #[serde(default)]
    pub leader: bool,
    /// The model.
    #[serde(default)]
    pub model: ModelScene,
    /// The options that were set, as JSON. The others have the charm's defaults.
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
    /// The attached files by resource: their paths on this host.
    #[serde(default)]
    pub resources: BTreeMap<ResourceName, PathBuf>,
    /// The charm's stored state for the unit.
    #[serde(default)]
    pub state: BTreeMap<String, String>,
    /// The unit's open ports, for all endpoints.
    #[serde(default)]
    pub ports: BTreeSet<PortRange>,
    /// The host's addresses, the preferred one first.
    #[serde(default = "addresses")]
    pub addresses: Vec<String>,
    /// The host's interfaces; none if only the addresses are known.
    #[serde(default)]
    pub interfaces: Vec<HostInterface>,
    /// The spaces with their subnets.
    #[serde(default)]
    pub spaces: Spaces,
    /// The spaces that endpoints are bound to.
    #[serde(default)]
    pub bindings: Bindings,
    /// The number of units that the application is to have, this one included.
    #[serde(default = "first")]
    pub planned_units: u32,
    /// The unit's last status.
    #[serde(default)]
    pub unit_status: StatusScene,
    /// The application's last status, if its leader set one.
    #[serde(default)]
    pub application_status: Option<StatusScene>,
    /// The principal, of a subordinate.
    #[serde(default)]
    pub principal: Option<UnitName>,
    /// The zone; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// The parameters of the event's action, as the charm receives them.
    #[serde(default)]
    pub parameters: Parameters,
    /// The hook's budgets, as `model-config` takes them (`"hook-cpu-budget": "5s"`). The others have their defaults.
    #[serde(default)]
    pub budgets: BTreeMap<BudgetKey, String>,
    /// The time that the hook sees; none means the host's.
    #[serde(default)]
    pub now: Option<Timestamp>,
    /// 64 hex digits that seed all of the hook's randomness; none means a fresh seed.
    #[serde(default)]
    pub seed: Option<String>,
}

impl Scene {
    /// Creates the scene of a unit that stands alone.
    pub(crate) fn of_unit(unit: UnitName) -> Self {
        Self {
            unit,
            event: EventScene::default(),
            attempt: first(),
            leader: false,
            model: ModelScene::default(),
            config: BTreeMap::new(),
            relations: Vec::new(),
            secrets: Vec::new(),
            storages: Vec::new(),
            resources: BTreeMap::new(),
            state: BTreeMap::new(),
            ports: BTreeSet::new(),
            addresses: addresses(),
            interfaces: Vec::new(),
            spaces: Spaces::default(),
            bindings: Bindings::default(),
            planned_units: first(),
            unit_status: StatusScene::default(),
            application_status: None,
            principal: None,
            availability_zone: String::new(),
            parameters: Parameters::new(),
            budgets: BTreeMap::new(),
            now: None,
            seed: None,
        }
    }

    /// Returns the budgets.
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

/// Parses a literal.
#[expect(clippy::expect_used, reason = "its callers pass literals, and each test of a scene passes them all")]
fn constant<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("a literal of the right form")
}

/// A relation, as the unit sees it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RelationScene {
    /// Its number.
    pub id: RelationId,
    /// The charm's endpoint of the relation.
    pub endpoint: EndpointName,
    /// The application at the other end; a peer relation has none.
    #[serde(default)]
    pub remote_application: Option<ApplicationName>,
    /// The model at the other end, if it is another model.
    #[serde(default)]
    pub remote_model: Option<ModelUuid>,
    /// The relation's life: dying in its last hooks.
    #[serde(default)]
    pub life: Life,
    /// The unit's own settings.
    #[serde(default)]
    pub unit_settings: Settings,
    /// The settings of its application.
    #[serde(default)]
    pub application_settings: Settings,
    /// The settings of the remote application.
    #[serde(default)]
    pub remote_settings: Settings,
    /// The members that the unit was told of, with their settings.
    #[serde(default)]
    pub members: BTreeMap<UnitName, Settings>,
    /// Members that left, with their settings, which stay readable.
    #[serde(default)]
    pub former_members: BTreeMap<UnitName, Settings>,
}

/// A secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SecretScene {
    /// Its id.
    pub id: SecretId,
    /// The owner.
    pub owner: SecretOwner,
    /// The content of each existing revision; the highest is the latest.
    pub revisions: BTreeMap<SecretRevision, BTreeMap<String, String>>,
    /// The owner's label.
    #[serde(default)]
    pub label: Option<String>,
    /// The description, for operators.
    #[serde(default)]
    pub description: String,
    /// The rotation policy.
    #[serde(default)]
    pub rotate: RotatePolicy,
    /// The time at which the latest revision expires.
    #[serde(default)]
    pub expire: Option<Timestamp>,
    /// The readers, with the relation of each grant. A unit that is not the owner needs a grant to itself or to its
    /// application.
    #[serde(default)]
    pub grants: BTreeMap<SecretReader, Option<RelationId>>,
    /// The revision that the unit reads until it refreshes; none before its first read.
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
    /// The instance's id, such as `data/0`.
    pub id: StorageId,
    /// The directory on this host with its content. Hooks change it.
    pub directory: PathBuf,
}

/// A status.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StatusScene {
    /// The status.
    pub status: WorkloadStatus,
    /// The message, for operators.
    #[serde(default)]
    pub message: String,
}

impl Default for StatusScene {
    fn default() -> Self {
        Self { status: WorkloadStatus::Unknown, message: String::new() }
    }
}

/// A scene that is invalid for the charm.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SceneError {
    /// The scene names something that the charm does not declare.
    #[error("the charm has no {what} {name:?}")]
    Undeclared {
        /// The kind: `endpoint`, `endpoint or extra binding`, `storage`, `resource`, `action`.
        what: &'static str,
        /// The name in the scene.
        name: String,
    },
    /// An option has an invalid value.
    #[error("config: {0}")]
    Config(#[from] SettingError),
    /// An option is no text, number or boolean.
    #[error("config: option {0:?} is a list or an object; options are text, numbers or truth values")]
    OptionShape(String),
    /// Parts of the scene contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A secret has invalid content.
    #[error("secret {id}: {reason}")]
    Secret {
        /// The secret's id.
        id: SecretId,
        /// The reason.
        reason: ContentError,
    },
    /// A file or directory of this host cannot be used.
    #[error("{path}: {reason}")]
    File {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A budget has an invalid value.
    #[error("budgets: {0}")]
    Budget(#[from] BudgetError),
    /// The seed is not 64 hex digits.
    #[error("the seed is not 64 hex digits")]
    Seed,
}

/// Returns the charm's declaration of a scene's storage.
pub(crate) fn declared<'m>(meta: &'m CharmMeta, id: &StorageId) -> Result<&'m StorageMeta, SceneError> {
    let undeclared = || SceneError::Undeclared { what: "storage", name: id.name().to_string() };
    meta.storage.get(id.name()).ok_or_else(undeclared)
}
