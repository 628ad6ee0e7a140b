//! Checks of a query: each name exists, and each value has the required kind.

use super::{
    QueryError,
    entity_kind::{EntityKind, ValueKind},
    parse::{Comparison, Expression, Node},
};

pub(super) fn check(goal: &Expression, kind: EntityKind) -> Result<(), QueryError> {
    let mut names = Names { own: kind, loops: Vec::new() };
    names.goal(goal).map(drop)
}

/// The scope of names.
struct Names<'a> {
    own: EntityKind,
    /// The entities of loops, the innermost last.
    loops: Vec<(&'a str, EntityKind)>,
}

fn wanted(what: &str, at: &Expression, found: ValueKind) -> QueryError {
    QueryError::new(at.column, format!("{what} expected, not {found}"))
}

impl<'a> Names<'a> {
    fn kind(&mut self, expression: &'a Expression) -> Result<ValueKind, QueryError> {
        let column = expression.column;
        match &expression.node {
            Node::Text(_) => Ok(ValueKind::Text),
            Node::Number(_) => Ok(ValueKind::Number),
            Node::Truth(_) => Ok(ValueKind::Truth),
            Node::Name(name) => match self.loops.iter().rev().find(|(known, _)| known == name) {
                Some((_, kind)) => Ok(ValueKind::Entity(*kind)),
                None => field(self.own, name, column),
            },
            Node::Field(of, name) => match self.kind(of)? {
                ValueKind::Entity(kind) => field(kind, name, column),
                ValueKind::Entities(kind) => {
                    let all = kind.plural();
                    let reason = format!("{all} is a list: `forEach({all}, one => one.{name} ...)`");
                    Err(QueryError::new(column, reason))
                }
                other => Err(QueryError::new(column, format!("{other} has no fields"))),
            },
            Node::Not(inner) => self.want(inner, ValueKind::Truth),
            Node::All(parts) | Node::Any(parts) => {
                for part in parts {
                    self.want(part, ValueKind::Truth)?;
                }
                Ok(ValueKind::Truth)
            }
            Node::Compare(comparison, at, left, right) => {
                let (kind, other) = (self.kind(left)?, self.kind(right)?);
                comparable(*comparison, kind, left)?;
                match kind == other {
                    true => Ok(ValueKind::Truth),
                    false => Err(QueryError::new(*at, format!("{kind} and {other} are never equal"))),
                }
            }
            Node::Length(of) => match self.kind(of)? {
                ValueKind::Text | ValueKind::Entities(_) => Ok(ValueKind::Number),
                other => Err(QueryError::new(of.column, format!("{other} has no length"))),
            },
            Node::Affix(_, text, affix) => {
                self.want(text, ValueKind::Text)?;
                self.want(affix, ValueKind::Text)?;
                Ok(ValueKind::Truth)
            }
            Node::Each { entities, name, holds } => {
                let kind = match self.kind(entities)? {
                    ValueKind::Entities(kind) => kind,
                    other => {
                        let reason = format!("a list of entities expected, not {other}");
                        return Err(QueryError::new(entities.column, reason));
                    }
                };
                self.loops.push((name, kind));
                let kind = self.goal(holds);
                self.loops.pop();
                kind
            }
        }
    }

    /// Checks an expression that must hold: a boolean, or a value that counts as one, as the goal itself.
    fn goal(&mut self, expression: &'a Expression) -> Result<ValueKind, QueryError> {
        match self.kind(expression)? {
            ValueKind::Truth | ValueKind::Number | ValueKind::Text => Ok(ValueKind::Truth),
            other => Err(wanted("a boolean", expression, other)),
        }
    }

    fn want(&mut self, expression: &'a Expression, kind: ValueKind) -> Result<ValueKind, QueryError> {
        match self.kind(expression)? {
            found if found == kind => Ok(kind),
            found => Err(wanted(&kind.to_string(), expression, found)),
        }
    }
}

fn field(kind: EntityKind, name: &str, column: usize) -> Result<ValueKind, QueryError> {
    kind.kind_of(name).ok_or_else(|| {
        let known: Vec<_> = kind.fields().iter().map(|(name, _)| *name).collect();
        let reason = format!("{kind} has no {name:?}; it has {}", known.join(", "));
        QueryError::new(column, reason)
    })
}

fn comparable(comparison: Comparison, kind: ValueKind, at: &Expression) -> Result<(), QueryError> {
    match (comparison, kind) {
        (_, ValueKind::Entity(_) | ValueKind::Entities(_)) => {
            Err(QueryError::new(at.column, format!("{kind} cannot be compared")))
        }
        (Comparison::Equal | Comparison::Unequal, _) | (_, ValueKind::Text | ValueKind::Number) => Ok(()),
        (_, ValueKind::Truth) => {
            Err(QueryError::new(at.column, format!("{kind} is not less or more than another")))
        }
    }
}
