//! A relation of this unit's application.

use crate::{Bag, Context, Error, OwnBag, Result, host};
use std::fmt;

/// A relation, from this unit's side; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Relation {
    id: u32,
    endpoint: String,
}

impl Relation {
    pub(crate) fn new(id: u32, endpoint: impl Into<String>) -> Self {
        Self { id, endpoint: endpoint.into() }
    }

    /// Returns the relation's number in its model.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns the endpoint of this unit's side.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the application at the other end; in a peer relation, the unit's own.
    ///
    /// # Errors
    ///
    /// When the relation is gone.
    pub fn remote_app(&self) -> Result<String> {
        host::relations::remote_application(self.id).map_err(Error::refused).context(self)
    }

    /// Returns the remote units in view, sorted; never this unit itself.
    ///
    /// # Errors
    ///
    /// When the relation is gone.
    pub fn members(&self) -> Result<Vec<String>> {
        host::relations::members(self.id).map_err(Error::refused).context(self)
    }

    /// Returns this unit's own bag.
    pub fn unit_bag(&self) -> OwnBag {
        OwnBag::unit(self)
    }

    /// Returns the bag of this unit's application. Only the leader writes it. Outside peer relations only the leader
    /// reads it.
    pub fn app_bag(&self) -> OwnBag {
        OwnBag::application(self)
    }

    /// Returns a remote unit's bag.
    pub fn member_bag(&self, unit: &str) -> Bag {
        Bag::of_unit(self, unit)
    }

    /// Returns the bag of the application at the other end.
    ///
    /// # Errors
    ///
    /// When the relation is gone.
    pub fn remote_app_bag(&self) -> Result<Bag> {
        Ok(Bag::of_application(self, &self.remote_app()?))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.endpoint, self.id)
    }
}
