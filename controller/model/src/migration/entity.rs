//! The state of a migration, which a model keeps.

use std::time::Duration;

use periapt_host_api::{Timestamp, agent::ControllerPlace, secret::Sealed};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The state of a model's migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Migration {
    /// The model is carried to another controller. It is shown, and takes no commands.
    Exporting(Export),
    /// The other controller has all of the model, and takes over. Only its answer ends this.
    HandedOver(Export),
    /// The other controller has taken over. The model is hidden here.
    Moved(Moved),
    /// A model that comes from another controller. It is hidden until it is taken over.
    Importing(Import),
    /// The last migration ended, and the model stayed: it is served as ever.
    Failed(Failed),
}

/// The time for which a model that was given up or forgotten is known. Meanwhile each controller that runs deletes its
/// history: what comes in a later attempt must not be mixed with it.
const HISTORY_GOES_WITHIN: Duration = Duration::from_secs(30);

impl Migration {
    /// Returns true if the model takes no commands, and the controller does nothing in it of its own.
    pub(crate) fn freezes(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// Returns true if something is yet to come of it.
    pub(crate) fn is_pending(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.untold.is_some(),
            _ => true,
        }
    }

    /// Returns true if the model does not exist for clients.
    pub(crate) fn hides(&self) -> bool {
        matches!(self, Self::Moved(_) | Self::Importing(_))
    }

    /// Returns true if it is the migration of this id.
    pub(crate) fn is(&self, id: Uuid) -> bool {
        match self {
            Self::Exporting(export) | Self::HandedOver(export) => export.id == id,
            Self::Moved(moved) => moved.id == id,
            Self::Importing(import) => import.id == id,
            Self::Failed(failed) => failed.id == id,
        }
    }

    /// Returns the time of the next step that the migration needs of the controller, while entities of the model are there
    /// besides the model itself; none if it waits for others.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Exporting(export) => Some(export.expires_at),
            Self::HandedOver(_) | Self::Failed(_) => None,
            Self::Moved(moved) => Some(moved.expires_at),
            Self::Importing(import) => import.given_up_at.or(import.expires_at),
        }
    }

    /// Returns the time of the last step, when the model itself is all that is left; none if it waits for others.
    pub(crate) fn end_due(&self) -> Option<Timestamp> {
        let later = |at: Timestamp| at.checked_add(HISTORY_GOES_WITHIN).unwrap_or(Timestamp::MAX);
        match self {
            Self::Importing(Import { given_up_at: Some(at), .. }) => Some(later(*at)),
            Self::Moved(moved) => Some(later(moved.expires_at)),
            other => other.due(),
        }
    }
}

/// A model on its way to another controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Export {
    /// The migration.
    pub id: Uuid,
    /// The controller to which the model goes.
    pub target: ControllerPlace,
    /// The token of a session there, encrypted with this controller's key.
    pub token: Sealed,
    /// The time at which the phase began.
    pub since: Timestamp,
    /// The time at which the migration ends by itself, until the model is handed over.
    pub expires_at: Timestamp,
}

/// A model that has gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Moved {
    /// The migration.
    pub id: Uuid,
    /// The controller that has the model.
    pub target: ControllerPlace,
    /// The time at which it took over.
    pub since: Timestamp,
    /// The time from which nobody is told any more. Then the rest of the model is deleted, step by step.
    pub expires_at: Timestamp,
}

/// A model that comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Import {
    /// The migration.
    pub id: Uuid,
    /// The controller that has the model.
    pub source: Uuid,
    /// The time at which it began to come.
    pub since: Timestamp,
    /// The number of the page that is expected next.
    pub next_page: u64,
    /// The time from which the model is given up; none once it has come whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The time at which it was given up. Then it is deleted, step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up_at: Option<Timestamp>,
}

/// A migration that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failed {
    /// The migration.
    pub id: Uuid,
    /// The time.
    pub at: Timestamp,
    /// The reason, for people.
    pub reason: String,
    /// The migration, until the other controller is told that no part of the model may be taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Box<Export>>,
}
