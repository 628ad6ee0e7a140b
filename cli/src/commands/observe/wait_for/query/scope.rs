//! The evaluation of queries. Kinds are checked before, so evaluation cannot fail: an impossible value is
//! nothing.

use std::cmp::Ordering;

use super::{
    parse::{Affix, Comparison, Expression, Node},
    status_entity::{StatusEntity, Value},
};

/// The values of names.
#[derive(Debug, Clone)]
pub(super) struct Scope<'a, 'q> {
    own: StatusEntity<'a>,
    /// The entities of loops, the innermost last.
    loops: Vec<(&'q str, StatusEntity<'a>)>,
}

impl<'a, 'q> Scope<'a, 'q> {
    pub(super) fn of(own: StatusEntity<'a>) -> Self {
        Self { own, loops: Vec::new() }
    }

    pub(super) fn value(&mut self, expression: &'q Expression) -> Value<'a> {
        match &expression.node {
            Node::Text(text) => Value::Text(text.clone().into()),
            Node::Number(number) => Value::Number(*number),
            Node::Truth(truth) => Value::Truth(*truth),
            Node::Name(name) => match self.loops.iter().rev().find(|(known, _)| known == name) {
                Some((_, entity)) => Value::Entity(*entity),
                None => self.own.field(name),
            },
            Node::Field(of, name) => match self.value(of) {
                Value::Entity(entity) => entity.field(name),
                _ => Value::nothing(),
            },
            Node::Not(inner) => Value::Truth(!self.is(inner)),
            Node::All(parts) => Value::Truth(parts.iter().all(|part| self.is(part))),
            Node::Any(parts) => Value::Truth(parts.iter().any(|part| self.is(part))),
            Node::Compare(comparison, _, left, right) => {
                let order = self.value(left).order(&self.value(right));
                Value::Truth(order.is_some_and(|order| comparison.fits(order)))
            }
            Node::Length(of) => {
                let length = match self.value(of) {
                    Value::Text(text) => text.chars().count(),
                    Value::Entities(entities) => entities.len(),
                    _ => 0,
                };
                // Larger lengths do not occur.
                Value::Number(u32::try_from(length).unwrap_or(u32::MAX).into())
            }
            Node::Affix(affix, text, part) => {
                let (text, part) = (self.value(text), self.value(part));
                Value::Truth(match affix {
                    Affix::Start => text.as_text().starts_with(part.as_text()),
                    Affix::End => text.as_text().ends_with(part.as_text()),
                })
            }
            Node::Each { entities, name, holds } => match self.value(entities) {
                Value::Entities(entities) => Value::Truth(
                    !entities.is_empty()
                        && entities.into_iter().all(|entity| self.holds_of(name, entity, holds)),
                ),
                _ => Value::nothing(),
            },
        }
    }

    fn is(&mut self, expression: &'q Expression) -> bool {
        self.value(expression).is_something()
    }

    fn holds_of(&mut self, name: &'q str, entity: StatusEntity<'a>, holds: &'q Expression) -> bool {
        self.loops.push((name, entity));
        let is = self.is(holds);
        self.loops.pop();
        is
    }
}

impl Comparison {
    fn fits(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::More => order.is_gt(),
            Self::MoreOrEqual => order.is_ge(),
        }
    }
}
