//! Symmetry: states that differ only in which of two units is which are one.
//!
//! Two units of one application that were deployed together, of the same charm and on machines of their own on one
//! agent, are told apart by their numbers alone. If a move leads from one state to another, then the same move with
//! the two exchanged leads from the first state, exchanged, to the second, exchanged: so whatever holds of all states
//! that are reached from one holds, exchanged, of all that are reached from its image, and one of both is enough. That
//! takes three things:
//!
//! - what is checked names no unit in particular: nor does it (`states.rs`);
//! - each move is there for both: so operators ask of either whatever they ask of one ([`super::scenes::Scene::moves`]);
//! - nothing goes by a number. One thing does: a keeper claims leadership for its units in the order of their names.
//!   Nothing promises that order, and so a unit may claim before all others
//!   ([`Move::Claim`](super::moves::Move::Claim)).
//!
//! That nothing else does is not taken on trust: a test goes everywhere in a model with and without this, and meets
//! the same states.

use std::{
    collections::{BTreeSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use periapt_lab::{Lab, Standings};
use serde_json::{Map, Value};

/// Two units that are told apart by nothing, and the numbers of their machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twins {
    pub(super) units: [&'static str; 2],
    pub(super) machines: [u64; 2],
}

/// Tells where models stand, whichever of two units is which.
pub(super) struct Places {
    twins: Option<Twins>,
    known: Standings<(u128, u128)>,
}

impl Places {
    pub(super) fn new(twins: Option<Twins>) -> Self {
        Self { twins, known: Standings::default() }
    }

    /// The same for all states in which the same can happen.
    pub(super) fn of(&mut self, lab: &Lab) -> u128 {
        let twins = self.twins;
        let image = |part: &Value| twins.map_or(0, |twins| digest(&twins.exchanged(part).to_string()));
        let parts = lab.standing(&mut self.known, |part| (digest(&part.to_string()), image(part))).unwrap();
        let own = together(parts.iter().map(|(own, _)| *own));
        match twins {
            None => own,
            Some(_) => own.min(together(parts.iter().map(|(_, image)| *image))),
        }
    }
}

/// What stands twice counts once. Only work items can: entities have keys of their own. Each step of a work item is
/// idempotent, and the item goes with the last, so a second one like it has nothing left to do. (Asking for force again
/// and again notes one each time: without this there would be no end of states.)
fn together(parts: impl Iterator<Item = u128>) -> u128 {
    digest(&BTreeSet::from_iter(parts))
}

/// Two hashes: 128 bits, so that no two of a million states are taken for one.
fn digest(what: &impl Hash) -> u128 {
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, what).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    hash(1) << 64 | hash(2)
}

impl Twins {
    /// The same with each in the other's place. Exchanging is its own inverse and loses nothing, so two states that
    /// come to the same text are the same, or images of each other. (A debug text inside may list the two in the order
    /// of their old names; then an image is not recognised, and searched as well.)
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
        // No text that is told has this character.
        text.replace(one, "\u{0}").replace(other, one).replace('\u{0}', other)
    }

    /// A machine, or its number.
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
