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

use std::collections::BTreeSet;

use periapt_lab::Lab;
use serde_json::{Map, Value};

/// Two units that are told apart by nothing, and the numbers of their machines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Twins {
    pub(super) units: [&'static str; 2],
    pub(super) machines: [u64; 2],
}

/// Where a model stands, whichever of two units is which.
pub(super) fn standing(lab: &Lab, twins: Option<Twins>) -> String {
    let parts = lab.standing().unwrap();
    let own = in_order(parts.iter().map(Value::to_string));
    match twins {
        None => own,
        Some(twins) => own.min(in_order(parts.iter().map(|part| twins.exchanged(part).to_string()))),
    }
}

/// What stands twice counts once. Only work items can: entities have keys of their own. Each step of a work item is
/// idempotent, and the item goes with the last, so a second one like it has nothing left to do. (Asking for force again
/// and again notes one each time: without this there would be no end of states.)
fn in_order(parts: impl Iterator<Item = String>) -> String {
    let parts: BTreeSet<String> = parts.collect();
    Vec::from_iter(parts).join("\n")
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
