//! Bags: the data that units and applications exchange in a relation.

use crate::bindings::periapt::charm::relations as wit;
use crate::{Context, Error, Relation, Result, host};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Deref;
use std::str::FromStr;

/// A bag that can be read.
#[derive(Clone, Debug)]
pub struct Bag {
    relation: Relation,
    owner: wit::Bag,
}

/// A bag that this unit may write: its own, or its application's if it leads.
#[derive(Clone, Debug)]
pub struct OwnBag {
    bag: Bag,
    which: wit::OwnBag,
}

impl Bag {
    pub(crate) fn of_unit(relation: &Relation, unit: &str) -> Self {
        Self { relation: relation.clone(), owner: wit::Bag::Unit(unit.to_owned()) }
    }

    pub(crate) fn of_application(relation: &Relation, application: &str) -> Self {
        Self { relation: relation.clone(), owner: wit::Bag::Application(application.to_owned()) }
    }

    /// Returns one key as any type that can be parsed from text, or `None` if the bag has no such key.
    ///
    /// # Errors
    ///
    /// When the bag may not be read, or the text does not parse.
    pub fn get<T: FromStr<Err: Display>>(&self, key: &str) -> Result<Option<T>> {
        let text = host::relations::get_value(self.relation.id(), &self.owner, key)
            .map_err(Error::refused)
            .context(self.name())?;
        let Some(text) = text else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(Error::new(format!("{}: {key} is \"{text}\": {error}", self.name()))),
        }
    }

    /// Returns one key that must exist.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get), and when the key is missing.
    pub fn require<T: FromStr<Err: Display>>(&self, key: &str) -> Result<T> {
        self.get(key)?.ok_or_else(|| Error::new(format!("{} has no {key}", self.name())))
    }

    /// Returns the whole bag.
    ///
    /// # Errors
    ///
    /// When the bag may not be read.
    pub fn all(&self) -> Result<BTreeMap<String, String>> {
        let pairs = host::relations::get(self.relation.id(), &self.owner)
            .map_err(Error::refused)
            .context(self.name())?;
        Ok(pairs.into_iter().collect())
    }

    /// Returns the relation's number and the bag's owner.
    pub(crate) fn parts(&self) -> (u32, wit::Bag) {
        (self.relation.id(), self.owner.clone())
    }

    fn name(&self) -> String {
        let (wit::Bag::Unit(owner) | wit::Bag::Application(owner)) = &self.owner;
        format!("bag of {owner} in {}", self.relation)
    }
}

impl OwnBag {
    pub(crate) fn unit(relation: &Relation) -> Self {
        let bag = Bag::of_unit(relation, &host::identity::unit_name());
        Self { bag, which: wit::OwnBag::Unit }
    }

    pub(crate) fn application(relation: &Relation) -> Self {
        let bag = Bag::of_application(relation, &host::identity::application_name());
        Self { bag, which: wit::OwnBag::Application }
    }

    /// Sets one key. Other units see the value once the hook has succeeded. An empty value removes the key.
    ///
    /// # Errors
    ///
    /// When this unit may not write the bag, or a bound would be exceeded.
    pub fn set(&self, key: &str, value: impl Display) -> Result {
        self.set_all([(key, value)])
    }

    /// Sets several keys, all of them or none.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn set_all<K: Into<String>, V: Display>(&self, changes: impl IntoIterator<Item = (K, V)>) -> Result {
        let changes: Vec<(String, String)> =
            changes.into_iter().map(|(key, value)| (key.into(), value.to_string())).collect();
        host::relations::set(self.bag.relation.id(), self.which, &changes)
            .map_err(Error::refused)
            .context(self.bag.name())
    }

    /// Removes one key, if it exists.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    pub fn remove(&self, key: &str) -> Result {
        self.set(key, "")
    }
}

impl Deref for OwnBag {
    type Target = Bag;

    fn deref(&self) -> &Bag {
        &self.bag
    }
}
