//! Symmetry reduction: states that differ only in the roles of two equal units are one state.
//!
//! Two units of one application that were deployed together, of the same charm and on machines of their own on one
//! agent, differ in their numbers alone. If a move leads from one state to another, then the same move with the two
//! units exchanged leads from the exchanged first state to the exchanged second one. So an invariant of all states
//! reached from a state also holds, exchanged, of all states reached from its image, and one of both is enough. That
//! needs three things:
//!
//! - The checks name no unit in particular (`states.rs`).
//! - Each move exists for both units: operators may ask of either whatever they ask of one
//!   ([`super::scenes::Scene::moves`]).
//! - Nothing depends on a number, with one exception: a keeper claims leadership for its units in the order of their
//!   names. That order is no promise, so a unit may also claim before all others
//!   ([`Move::Claim`](super::moves::Move::Claim)).
//!
//! A test checks that there is no other exception: it searches a model with and without the reduction, and finds the
//! same states.

use std::{
    collections::{BTreeSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use periapt_lab::{Lab, ReductionCache};
use serde_json::{Map, Value};

/// Two equal units, and the numbers of their machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct EqualUnits {
    pub(super) units: [&'static str; 2],
    pub(super) machines: [u64; 2],
}

/// Computes digests of states, equal for a state and its image.
pub(super) struct StateDigests {
    equal_units: Option<EqualUnits>,
    known: ReductionCache<(u128, u128)>,
}

impl StateDigests {
    pub(super) fn new(equal_units: Option<EqualUnits>) -> Self {
        Self { equal_units, known: ReductionCache::default() }
    }

    /// Returns an equal digest for all states in which the same can happen next.
    pub(super) fn of(&mut self, lab: &Lab) -> u128 {
        let equal_units = self.equal_units;
        let image = |part: &Value| {
            equal_units.map_or(0, |equal_units| digest(&equal_units.exchanged(part).to_string()))
        };
        let parts =
            lab.reduced_state(&mut self.known, |part| (digest(&part.to_string()), image(part))).unwrap();
        let own = together(parts.iter().map(|(own, _)| *own));
        match equal_units {
            None => own,
            Some(_) => own.min(together(parts.iter().map(|(_, image)| *image))),
        }
    }
}

/// Combines digests; equal parts count once. Only work items can be equal: entities have keys of their own. Each step
/// of a work item is idempotent, and the item goes with its last step, so a second equal one has nothing left to do.
/// (Each repeated force adds one: without this the states would have no end.)
fn together(parts: impl Iterator<Item = u128>) -> u128 {
    digest(&BTreeSet::from_iter(parts))
}

/// Computes two hashes: with 128 bits no two of a million states collide.
fn digest(what: &impl Hash) -> u128 {
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, what).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(1) << 64 | hash(2)
}

impl EqualUnits {
    /// Exchanges the two units. The exchange is its own inverse, so two states with the same result are equal, or
    /// images of each other. (A debug text inside may list the two in the order of their old names. Then an image is
    /// not recognized, and is searched as well.)
    fn exchanged(self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.renamed(text)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.exchanged(item)).collect()),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let exchanged = match name.as_str() {
                        "machine" => self.moved(value),
                        _ => self.exchanged(value),
                    };
                    (self.renamed(name), exchanged)
                };
                Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    fn renamed(self, text: &str) -> String {
        let [one, other] = self.units;
        // No text of a state has this character.
        text.replace(one, "\u{0}").replace(other, one).replace('\u{0}', other)
    }

    /// Exchanges the two machines, or their numbers.
    fn moved(self, value: &Value) -> Value {
        let [one, other] = self.machines;
        match value {
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let moved = if name == "id" { self.moved(value) } else { self.exchanged(value) };
                    (name.clone(), moved)
                };
                Value::Object(fields.iter().map(field).collect())
            }
            Value::String(number) if *number == one.to_string() => other.to_string().into(),
            Value::String(number) if *number == other.to_string() => one.to_string().into(),
            Value::Number(number) if number.as_u64() == Some(one) => other.into(),
            Value::Number(number) if number.as_u64() == Some(other) => one.into(),
            other => other.clone(),
        }
    }
}
