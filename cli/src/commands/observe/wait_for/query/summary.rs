//! The fields that a query names, which Juju prints when a goal is reached.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::{
    parse::{Expression, Node},
    subject::Kind,
    thing::{Thing, Value},
};

/// The named fields: the thing's own, and those of its members, by collection.
#[derive(Debug, Default)]
struct QueriedFields<'q> {
    own: BTreeSet<&'q str>,
    within: BTreeMap<&'q str, BTreeSet<&'q str>>,
    /// Names of loops over collections of the thing itself, the innermost last. Other loops add nothing.
    loops: Vec<(&'q str, Option<&'q str>)>,
}

pub(super) fn summary(goal: &Expression, thing: Thing<'_>) -> Json {
    let mut asked = QueriedFields::default();
    asked.gather(goal);
    let mut summary = Map::new();
    summary.insert("properties".to_owned(), properties(thing, &asked.own));
    for (collection, fields) in &asked.within {
        if let Value::Things(things) = thing.field(collection) {
            let things = things.into_iter().map(|thing| (thing.name().to_owned(), properties(thing, fields)));
            summary.insert((*collection).to_owned(), Json::Object(things.collect()));
        }
    }
    Json::Object(summary)
}

fn properties(thing: Thing<'_>, fields: &BTreeSet<&str>) -> Json {
    let shown = fields.iter().filter_map(|field| {
        let value = match thing.field(field) {
            Value::Text(text) => json!(text),
            Value::Number(number) => json!(number),
            Value::Truth(truth) => json!(truth),
            Value::Thing(_) | Value::Things(_) => return None,
        };
        let plain = thing.subject().kind_of(field).is_some_and(|kind| !matches!(kind, Kind::Things(_)));
        plain.then(|| ((*field).to_owned(), value))
    });
    Json::Object(shown.collect())
}

impl<'q> QueriedFields<'q> {
    fn gather(&mut self, expression: &'q Expression) {
        match &expression.node {
            Node::Text(_) | Node::Number(_) | Node::Truth(_) => {}
            Node::Name(name) => {
                if !self.loops.iter().any(|(known, _)| known == name) {
                    self.own.insert(name);
                }
            }
            Node::Field(of, field) => {
                if let Node::Name(name) = &of.node
                    && let Some((_, Some(collection))) =
                        self.loops.iter().rev().find(|(known, _)| known == name)
                {
                    self.within.entry(collection).or_default().insert(field);
                }
            }
            Node::Not(inner) | Node::Length(inner) => self.gather(inner),
            Node::All(parts) | Node::Any(parts) => parts.iter().for_each(|part| self.gather(part)),
            Node::Compare(_, _, left, right) | Node::Affix(_, left, right) => {
                self.gather(left);
                self.gather(right);
            }
            Node::Each { things, name, holds } => {
                let collection = match &things.node {
                    Node::Name(collection) => Some(collection.as_str()),
                    _ => None,
                };
                self.loops.push((name, collection));
                self.gather(holds);
                self.loops.pop();
            }
        }
    }
}
