//! The options of goals that are queries.

use std::fmt;

use clap::Args;
use periapt_host_api::status::FullStatus;

use super::query::{Query, Subject, Thing};
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

/// A query, with its subject.
#[derive(Debug, Clone)]
pub(super) struct Goal {
    pub(super) query: Query,
    pub(super) summary: bool,
    subject: Subject,
    name: String,
}

impl GoalArgs {
    /// Returns the goal for a thing, if there is a query.
    pub(super) fn of(&self, subject: Subject, name: &str) -> Result<Option<Goal>> {
        let Some(text) = &self.query else { return Ok(None) };
        let query = Query::new(text, subject).map_err(|error| Failure::new(error.shown(text)))?;
        Ok(Some(Goal { query, summary: self.summary, subject, name: name.to_owned() }))
    }
}

impl Goal {
    /// Returns the goal's thing, if it exists.
    pub(super) fn thing<'a>(&self, status: &'a FullStatus) -> Option<Thing<'a>> {
        match self.subject {
            Subject::Model => Some(Thing::model(status)),
            Subject::Application => Thing::application(status, &self.name),
            Subject::Unit => Thing::unit(status, &self.name),
            Subject::Machine => Thing::machine(status, &self.name),
        }
    }
}

/// The name of the goal's thing, for messages.
impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject {
            Subject::Model => f.write_str("the model"),
            Subject::Application => write!(f, "application {:?}", self.name),
            Subject::Unit => write!(f, "unit {:?}", self.name),
            Subject::Machine => write!(f, "machine {:?}", self.name),
        }
    }
}
