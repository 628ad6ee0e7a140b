//! Checks of a query: each name exists, and each value has the required kind.

use super::{
    QueryError,
    parse::{Comparison, Expression, Node},
    subject::{Kind, Subject},
};

pub(super) fn check(goal: &Expression, subject: Subject) -> Result<(), QueryError> {
    let mut names = Names { own: subject, loops: Vec::new() };
    names.goal(goal).map(drop)
}

/// The scope of names.
struct Names<'a> {
    own: Subject,
    /// The things of loops, the innermost last.
    loops: Vec<(&'a str, Subject)>,
}

fn wanted(what: &str, at: &Expression, found: Kind) -> QueryError {
    QueryError::new(at.column, format!("{what} is wanted, not {found}"))
}

impl<'a> Names<'a> {
    fn kind(&mut self, expression: &'a Expression) -> Result<Kind, QueryError> {
        let column = expression.column;
        match &expression.node {
            Node::Text(_) => Ok(Kind::Text),
            Node::Number(_) => Ok(Kind::Number),
            Node::Truth(_) => Ok(Kind::Truth),
            Node::Name(name) => match self.loops.iter().rev().find(|(known, _)| known == name) {
                Some((_, subject)) => Ok(Kind::Thing(*subject)),
                None => field(self.own, name, column),
            },
            Node::Field(of, name) => match self.kind(of)? {
                Kind::Thing(subject) => field(subject, name, column),
                Kind::Things(subject) => {
                    let all = subject.plural();
                    let reason = format!("{all} are several: `forEach({all}, one => one.{name} ...)`");
                    Err(QueryError::new(column, reason))
                }
                other => Err(QueryError::new(column, format!("{other} has no fields"))),
            },
            Node::Not(inner) => self.want(inner, Kind::Truth),
            Node::All(parts) | Node::Any(parts) => {
                for part in parts {
                    self.want(part, Kind::Truth)?;
                }
                Ok(Kind::Truth)
            }
            Node::Compare(comparison, at, left, right) => {
                let (kind, other) = (self.kind(left)?, self.kind(right)?);
                comparable(*comparison, kind, left)?;
                match kind == other {
                    true => Ok(Kind::Truth),
                    false => Err(QueryError::new(*at, format!("{kind} and {other} are never equal"))),
                }
            }
            Node::Length(of) => match self.kind(of)? {
                Kind::Text | Kind::Things(_) => Ok(Kind::Number),
                other => Err(QueryError::new(of.column, format!("{other} has no length"))),
            },
            Node::Affix(_, text, affix) => {
                self.want(text, Kind::Text)?;
                self.want(affix, Kind::Text)?;
                Ok(Kind::Truth)
            }
            Node::Each { things, name, holds } => {
                let subject = match self.kind(things)? {
                    Kind::Things(subject) => subject,
                    other => {
                        let reason = format!("several things are wanted, not {other}");
                        return Err(QueryError::new(things.column, reason));
                    }
                };
                self.loops.push((name, subject));
                let kind = self.goal(holds);
                self.loops.pop();
                kind
            }
        }
    }

    /// Checks an expression that must hold: a boolean, or a value that counts as one, as the goal itself.
    fn goal(&mut self, expression: &'a Expression) -> Result<Kind, QueryError> {
        match self.kind(expression)? {
            Kind::Truth | Kind::Number | Kind::Text => Ok(Kind::Truth),
            other => Err(wanted("a truth", expression, other)),
        }
    }

    fn want(&mut self, expression: &'a Expression, kind: Kind) -> Result<Kind, QueryError> {
        match self.kind(expression)? {
            found if found == kind => Ok(kind),
            found => Err(wanted(&kind.to_string(), expression, found)),
        }
    }
}

fn field(subject: Subject, name: &str, column: usize) -> Result<Kind, QueryError> {
    subject.kind_of(name).ok_or_else(|| {
        let known: Vec<_> = subject.fields().iter().map(|(name, _)| *name).collect();
        let reason = format!("{subject} has no {name:?}; it has {}", known.join(", "));
        QueryError::new(column, reason)
    })
}

fn comparable(comparison: Comparison, kind: Kind, at: &Expression) -> Result<(), QueryError> {
    match (comparison, kind) {
        (_, Kind::Thing(_) | Kind::Things(_)) => {
            Err(QueryError::new(at.column, format!("{kind} cannot be compared")))
        }
        (Comparison::Equal | Comparison::Unequal, _) | (_, Kind::Text | Kind::Number) => Ok(()),
        (_, Kind::Truth) => {
            Err(QueryError::new(at.column, format!("{kind} is not less or more than another")))
        }
    }
}
