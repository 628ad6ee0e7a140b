//! The options of goals that are queries.

use std::fmt;

use clap::Args;
use periapt_host_api::status::FullStatus;

use super::query::{EntityKind, Query, StatusEntity};
use crate::error::{Failure, Result};

/// The options of a goal in Juju's query language.
#[derive(Debug, Args)]
pub(super) struct GoalArgs {
    /// A condition in Juju's language of queries
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// Print the fields that the query names, once it holds; --summary=false does not
    #[arg(long, default_value_t = true)]
    summary: bool,
}

/// A query about one entity.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    pub(super) query: Query,
    pub(super) summary: bool,
    kind: EntityKind,
    name: String,
}

impl GoalArgs {
    /// Returns the goal for an entity, if there is a query.
    pub(super) fn of(&self, kind: EntityKind, name: &str) -> Result<Option<Goal>> {
        let Some(text) = &self.query else { return Ok(None) };
        let query = Query::new(text, kind).map_err(|error| Failure::new(error.shown(text)))?;
        Ok(Some(Goal { query, summary: self.summary, kind, name: name.to_owned() }))
    }
}

impl Goal {
    /// Returns the goal's entity, if it exists.
    pub(super) fn entity<'a>(&self, status: &'a FullStatus) -> Option<StatusEntity<'a>> {
        match self.kind {
            EntityKind::Model => Some(StatusEntity::model(status)),
            EntityKind::Application => StatusEntity::application(status, &self.name),
            EntityKind::Unit => StatusEntity::unit(status, &self.name),
            EntityKind::Machine => StatusEntity::machine(status, &self.name),
        }
    }
}

/// The name of the goal's entity, for messages.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            EntityKind::Model => f.write_str("the model"),
            EntityKind::Application => write!(f, "application {:?}", self.name),
            EntityKind::Unit => write!(f, "unit {:?}", self.name),
            EntityKind::Machine => write!(f, "machine {:?}", self.name),
        }
    }
}
