//! Commands to the controller: about models as a whole, model defaults, cloud records, users and their access.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Force;
use crate::{
    AgentName, ModelName, ModelUuid, UserName,
    access::ControllerAccess,
    agent::{Admission, PoolAdmission},
    cloud::CloudChange,
    migration::{ImportPage, ImportPlan, MigrationTarget},
    offer::{OfferAccess, OfferUrl},
    program::ProgramOffer,
    storage::StorageEnd,
    user::SessionId,
};

/// A command to the controller, outside of any model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerCommand {
    /// Makes a model.
    AddModel {
        /// The model's name, unique among the owner's models.
        name: ModelName,
        /// The initial model configuration, as text by key.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        config: BTreeMap<String, String>,
    },
    /// Changes the defaults of model configuration.
    SetModelDefaults {
        /// Values as text, by key.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// The keys to reset to their built-in defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Destroys a model and everything in it.
    DestroyModel {
        /// The model.
        model: ModelUuid,
        /// Bounds the wait for the units' agents.
        #[serde(default)]
        force: Option<Force>,
        /// The treatment of storage; required if the model has any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage: Option<StorageEnd>,
    },
    /// Begins to move a model to another controller. From now on the model takes no commands.
    Migrate {
        /// The model.
        model: ModelUuid,
        /// The controller to which it goes.
        target: Box<MigrationTarget>,
    },
    /// Ends a migration: the model stays. One that is handed over already ends by force alone.
    AbortMigration {
        /// The model.
        model: ModelUuid,
        /// True to take a model back that is handed over, if the other controller is lost for good.
        #[serde(default)]
        force: bool,
    },
    /// Forgets a model that has moved to another controller: nobody is told any more where it has gone.
    ForgetMigration {
        /// The model.
        model: ModelUuid,
        /// True to forget it although agents of the model have not gone yet.
        #[serde(default)]
        force: bool,
    },
    /// Begins to take a model from another controller, or checks that it could be taken.
    BeginImport {
        /// The model, with what it needs.
        plan: Box<ImportPlan>,
        /// True to check alone.
        #[serde(default)]
        check: bool,
    },
    /// Takes a part of a model from another controller.
    ImportPage(Box<ImportPage>),
    /// Checks that a model has come whole, and keeps it until the other controller says what becomes of it.
    HoldImport {
        /// The model.
        model: ModelUuid,
        /// The migration.
        id: Uuid,
        /// The number of entities that the other controller has sent.
        entities: u64,
    },
    /// Takes over a model that has come whole: from now on it is served here.
    ActivateImport {
        /// The model.
        model: ModelUuid,
        /// The migration.
        id: Uuid,
    },
    /// Forgets a model that was not taken over.
    AbortImport {
        /// The model.
        model: ModelUuid,
        /// The migration.
        id: Uuid,
        /// True to keep a model that has come whole: another controller of the log may have handed it over.
        #[serde(default)]
        unless_held: bool,
    },
    /// Admits an agent: the holder of the token joins as it.
    AdmitAgent(Admission),
    /// Admits agents of a pool: each host that has the token joins as one of them.
    AdmitPool(PoolAdmission),
    /// Refuses a pool's token from now on. Agents that have joined stay.
    ClosePool {
        /// The pool.
        pool: AgentName,
    },
    /// Removes an agent. Its key and its tokens are refused from then on.
    RemoveAgent {
        /// The agent.
        agent: AgentName,
        /// True to remove an agent that has machines or storage.
        #[serde(default)]
        force: bool,
    },
    /// Removes one of several controllers of a log. It ends, and joins again with a new token alone.
    RemoveController {
        /// The controller's name among those of the log.
        name: String,
    },
    /// Sets the program by which all controllers and agents replace themselves.
    SetProgram(ProgramOffer),
    /// Stores or removes records that have no effect, such as credentials.
    Keep(CloudChange),
    /// Removes a user with all sessions. Grants of the user lose their effect.
    RemoveUser {
        /// The user.
        user: UserName,
    },
    /// Refuses a user's logins and ends all sessions, until the user is enabled.
    DisableUser {
        /// The user.
        user: UserName,
    },
    /// Ends the effect of `DisableUser`.
    EnableUser {
        /// The user.
        user: UserName,
    },
    /// Grants a user access to the controller.
    GrantController {
        /// The user.
        user: UserName,
        /// The access level.
        access: ControllerAccess,
    },
    /// Revokes a user's access to the controller; the next lower level stays.
    RevokeController {
        /// The user.
        user: UserName,
        /// The access level.
        access: ControllerAccess,
    },
    /// Grants a user access to an offer.
    GrantOffer {
        /// The offer.
        offer: OfferUrl,
        /// The user.
        user: UserName,
        /// The access level.
        access: OfferAccess,
    },
    /// Revokes a user's access to an offer; the next lower level stays.
    RevokeOffer {
        /// The offer.
        offer: OfferUrl,
        /// The user.
        user: UserName,
        /// The access level.
        access: OfferAccess,
    },
    /// Ends a session or an API token.
    CloseSession {
        /// The session.
        session: SessionId,
    },
}

impl ControllerCommand {
    /// Returns the command that makes a model with default configuration.
    pub fn add_model(name: ModelName) -> Self {
        Self::AddModel { name, config: BTreeMap::new() }
    }

    /// Returns true if the command sets or resets a key in the configuration of a new model, or of all models.
    pub fn changes_key(&self, key: &str) -> bool {
        match self {
            Self::AddModel { config, .. } => config.contains_key(key),
            Self::SetModelDefaults { set, reset } => {
                set.contains_key(key) || reset.iter().any(|name| name == key)
            }
            _ => false,
        }
    }
}
