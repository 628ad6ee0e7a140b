//! The fields that a query names, which Juju prints when a goal is reached.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::{
    entity_kind::ValueKind,
    parse::{Expression, Node},
    status_entity::{StatusEntity, Value},
};

/// The named fields: the entity's own, and those of its members, by collection.
#[derive(Debug, Default)]
struct QueriedFields<'q> {
    own: BTreeSet<&'q str>,
    within: BTreeMap<&'q str, BTreeSet<&'q str>>,
    /// Names of loops over collections of the entity itself, the innermost last. Other loops add nothing.
    loops: Vec<(&'q str, Option<&'q str>)>,
}

pub(super) fn summary(goal: &Expression, entity: StatusEntity<'_>) -> Json {
    let mut asked = QueriedFields::default();
    asked.gather(goal);
    let mut summary = Map::new();
    summary.insert("properties".to_owned(), properties(entity, &asked.own));
    for (collection, fields) in &asked.within {
        if let Value::Entities(entities) = entity.field(collection) {
            let entities =
                entities.into_iter().map(|entity| (entity.name().to_owned(), properties(entity, fields)));
            summary.insert((*collection).to_owned(), Json::Object(entities.collect()));
        }
    }
    Json::Object(summary)
}

fn properties(entity: StatusEntity<'_>, fields: &BTreeSet<&str>) -> Json {
    let shown = fields.iter().filter_map(|field| {
        let value = match entity.field(field) {
            Value::Text(text) => json!(text),
            Value::Number(number) => json!(number),
            Value::Truth(truth) => json!(truth),
            Value::Entity(_) | Value::Entities(_) => return None,
        };
        let plain = entity.kind().kind_of(field).is_some_and(|kind| !matches!(kind, ValueKind::Entities(_)));
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
            Node::Each { entities, name, holds } => {
                let collection = match &entities.node {
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
