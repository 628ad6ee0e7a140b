//! A map from units to values, kept as runs: consecutive units of one application with equal values take one entry. A
//! unit's record of ten thousand members is one run in most cases, and costs as much to copy, send and store as a record
//! of ten.
//!
//! As JSON, a map is `{"mysql": [[0, 9999, 1], [10000, 10000, 3]]}`: by application the first unit of each run, its last
//! unit, and their value. The earlier form `{"mysql/0": 1}` can be read, too.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};

use crate::{ApplicationName, UnitName};

mod merged_run;

pub use merged_run::{MergedRun, merged_runs};

/// The most units of a map that is read. A run of a few bytes may stand for any number of units, and readers may list them
/// all.
pub const MAX_UNITS: usize = 1 << 20;

/// A map from units to values. The cost of cloning is proportional to the number of applications.
#[derive(Clone, PartialEq, Eq)]
pub struct UnitMap<V> {
    // No list is empty. The runs of a list are in order, and none can be joined to its neighbour: equal maps have equal runs.
    applications: BTreeMap<ApplicationName, Arc<Vec<UnitRun<V>>>>,
    len: usize,
}

/// Consecutive units of one application with equal values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u32, V)", into = "(u32, u32, V)")]
#[serde(bound(serialize = "V: Clone + Serialize"))]
pub struct UnitRun<V> {
    /// The number of the first unit.
    pub first: u32,
    /// The number of the last unit.
    pub last: u32,
    /// Their value.
    pub value: V,
}

impl<V> From<(u32, u32, V)> for UnitRun<V> {
    fn from((first, last, value): (u32, u32, V)) -> Self {
        Self { first, last, value }
    }
}

impl<V> From<UnitRun<V>> for (u32, u32, V) {
    fn from(UnitRun { first, last, value }: UnitRun<V>) -> Self {
        (first, last, value)
    }
}

impl<V> UnitRun<V> {
    /// Returns the number of units.
    pub fn len(&self) -> usize {
        usize::try_from(self.last.abs_diff(self.first)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Returns false: a run has at least one unit.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl<V> Default for UnitMap<V> {
    fn default() -> Self {
        Self { applications: BTreeMap::new(), len: 0 }
    }
}

impl<V> UnitMap<V> {
    /// Creates a map without units.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of units.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the map has no unit.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a unit's value.
    pub fn get(&self, unit: &UnitName) -> Option<&V> {
        let runs = self.runs(unit.application());
        let run = runs.get(position(runs, unit.number()).ok()?)?;
        Some(&run.value)
    }

    /// Returns true if the map has the unit.
    pub fn contains_key(&self, unit: &UnitName) -> bool {
        self.get(unit).is_some()
    }

    /// Returns the runs of an application's units, by number.
    pub fn runs(&self, application: &ApplicationName) -> &[UnitRun<V>] {
        self.applications.get(application).map_or(&[], |runs| runs.as_slice())
    }

    /// Returns the applications of the units, sorted.
    pub fn applications(&self) -> impl Iterator<Item = &ApplicationName> {
        self.applications.keys()
    }

    /// Returns the units with their values, sorted.
    pub fn iter(&self) -> Iter<'_, V> {
        Box::new(self.applications.iter().flat_map(|(application, runs)| {
            runs.iter().flat_map(move |run| {
                let unit = |number| UnitName::new(application.clone(), number);
                (run.first..=run.last).map(move |number| (unit(number), &run.value))
            })
        }))
    }

    /// Returns the units, sorted.
    pub fn keys(&self) -> impl Iterator<Item = UnitName> {
        self.iter().map(|(unit, _)| unit)
    }

    /// Removes all units.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<V: Clone + PartialEq> UnitMap<V> {
    /// Sets a unit's value and returns the former one.
    pub fn insert(&mut self, unit: UnitName, value: V) -> Option<V> {
        let runs = self.applications.entry(unit.application().clone()).or_default();
        let before = put(Arc::make_mut(runs), unit.number(), Some(value));
        self.len = self.len.saturating_add(usize::from(before.is_none()));
        before
    }

    /// Removes a unit and returns its value.
    pub fn remove(&mut self, unit: &UnitName) -> Option<V> {
        let runs = self.applications.get_mut(unit.application())?;
        position(runs, unit.number()).ok()?;
        let before = put(Arc::make_mut(runs), unit.number(), None);
        if runs.is_empty() {
            self.applications.remove(unit.application());
        }
        self.len = self.len.saturating_sub(usize::from(before.is_some()));
        before
    }
}

/// Returns the index of the run that contains a number, or else the index at which its run would be inserted.
fn position<V>(runs: &[UnitRun<V>], number: u32) -> Result<usize, usize> {
    let behind = runs.partition_point(|run| run.last < number);
    match runs.get(behind) {
        Some(run) if run.first <= number => Ok(behind),
        _ => Err(behind),
    }
}

/// Sets or removes a number's value, joins the runs that can be joined, and returns the former value.
fn put<V: Clone + PartialEq>(runs: &mut Vec<UnitRun<V>>, number: u32, value: Option<V>) -> Option<V> {
    let (at, old) = match position(runs, number) {
        Ok(at) => (at, runs.get(at).cloned()),
        Err(at) => (at, None),
    };
    if let (Some(old), Some(value)) = (&old, &value)
        && old.value == *value
    {
        return Some(old.value.clone());
    }
    // What is left of the old run on both sides, with the new one between.
    let mut parts: Vec<UnitRun<V>> = Vec::with_capacity(3);
    let (mut from, mut to) = (at, at);
    if let Some(old) = &old {
        to = at.saturating_add(1);
        if let Some(last) = number.checked_sub(1).filter(|last| old.first <= *last) {
            parts.push(UnitRun { last, ..old.clone() });
        }
    }
    if let Some(value) = value {
        let mut new = UnitRun { first: number, last: number, value };
        let before = from.checked_sub(1).filter(|_| parts.is_empty());
        if let Some((index, run)) = before.and_then(|index| Some((index, runs.get(index)?)))
            && run.last.checked_add(1) == Some(number)
            && run.value == new.value
        {
            (from, new.first) = (index, run.first);
        }
        let is_last = old.as_ref().is_none_or(|old| old.last == number);
        if let Some(run) = runs.get(to).filter(|_| is_last)
            && number.checked_add(1) == Some(run.first)
            && run.value == new.value
        {
            (to, new.last) = (to.saturating_add(1), run.last);
        }
        parts.push(new);
    }
    if let Some(old) = &old
        && let Some(first) = number.checked_add(1).filter(|first| *first <= old.last)
    {
        parts.push(UnitRun { first, ..old.clone() });
    }
    runs.splice(from..to, parts);
    old.map(|old| old.value)
}

/// An iterator over the units of a map with their values.
pub type Iter<'a, V> = Box<dyn Iterator<Item = (UnitName, &'a V)> + 'a>;

impl<'a, V> IntoIterator for &'a UnitMap<V> {
    type Item = (UnitName, &'a V);
    type IntoIter = Iter<'a, V>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<V: Clone + PartialEq> FromIterator<(UnitName, V)> for UnitMap<V> {
    fn from_iter<I: IntoIterator<Item = (UnitName, V)>>(units: I) -> Self {
        let mut map = Self::default();
        for (unit, value) in units {
            map.insert(unit, value);
        }
        map
    }
}

impl<V: Clone + PartialEq, const N: usize> From<[(UnitName, V); N]> for UnitMap<V> {
    fn from(units: [(UnitName, V); N]) -> Self {
        units.into_iter().collect()
    }
}

/// As a map of units.
impl<V: fmt::Debug> fmt::Debug for UnitMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Clone + Serialize> Serialize for UnitMap<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.applications.iter().map(|(name, runs)| (name, runs.as_slice())))
    }
}

impl<'de, V: Clone + PartialEq + Deserialize<'de>> Deserialize<'de> for UnitMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

struct Reader<V>(PhantomData<V>);

impl<'de, V: Clone + PartialEq + Deserialize<'de>> Visitor<'de> for Reader<V> {
    type Value = UnitMap<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("runs of units by application, or values by unit")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UnitMap<V>, A::Error> {
        let mut map = UnitMap::default();
        while let Some(key) = entries.next_key::<String>()? {
            if key.contains('/') {
                let unit: UnitName = key.parse().map_err(A::Error::custom)?;
                map.insert(unit, entries.next_value()?);
            } else {
                let application: ApplicationName = key.parse().map_err(A::Error::custom)?;
                let runs: Vec<UnitRun<V>> = entries.next_value()?;
                map.read_runs(application, runs)?;
            }
            if map.len > MAX_UNITS {
                return Err(A::Error::custom(format_args!(
                    "a map has {} units, at most {MAX_UNITS} are allowed",
                    map.len
                )));
            }
        }
        Ok(map)
    }
}

impl<V: PartialEq> UnitMap<V> {
    /// Adds all runs of an application from the stored form. Refuses runs that are not in order or could be joined, and an
    /// application that the map has already.
    fn read_runs<E: serde::de::Error>(
        &mut self,
        application: ApplicationName,
        runs: Vec<UnitRun<V>>,
    ) -> Result<(), E> {
        if let Some(run) = runs.iter().find(|run| run.last < run.first) {
            return Err(E::custom(format_args!(
                "a run of {application:?} goes from {} back to {}",
                run.first, run.last
            )));
        }
        let joins = |(run, next): &(&UnitRun<V>, &UnitRun<V>)| {
            next.first <= run.last || (next.first.checked_sub(1) == Some(run.last) && next.value == run.value)
        };
        if let Some((run, next)) = runs.iter().zip(runs.iter().skip(1)).find(joins) {
            return Err(E::custom(format_args!(
                "the run of {application:?} from {} must come behind that to {}, with a gap or another value",
                next.first, run.last
            )));
        }
        let len = runs.iter().map(UnitRun::len).fold(0, usize::saturating_add);
        if runs.is_empty() || self.applications.insert(application.clone(), Arc::new(runs)).is_some() {
            return Err(E::custom(format_args!(
                "application {application:?} must stand there once, and with units"
            )));
        }
        self.len = self.len.saturating_add(len);
        Ok(())
    }
}

impl<V: JsonSchema> JsonSchema for UnitMap<V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("UnitMap_of_{}", V::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<ApplicationName, Vec<(u32, u32, V)>>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests;
