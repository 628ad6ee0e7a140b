//! The parser of queries: `||` binds least, then `&&`, equality, order, `!`.

use std::{iter::Peekable, vec::IntoIter};

use super::{
    MAX_DEPTH, MAX_LOOPS, QueryError,
    token::{Token, tokens},
};

/// A part of a query, with the column at which it begins.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    pub(super) column: usize,
    /// The number of levels, which bounds every recursion over it. At most [`MAX_DEPTH`].
    height: usize,
    pub(super) node: Node,
}

impl Expression {
    fn new(column: usize, node: Node) -> Result<Self, QueryError> {
        let height = 1 + node.tallest_part();
        match height > MAX_DEPTH {
            true => Err(too_deep(column)),
            false => Ok(Self { column, height, node }),
        }
    }
}

fn too_deep(column: usize) -> QueryError {
    QueryError::new(column, format!("it is nested deeper than {MAX_DEPTH} levels"))
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Text(String),
    Number(f64),
    Truth(bool),
    /// A field of the query's entity, or the name of a loop's entity.
    Name(String),
    /// A field of a loop's entity.
    Field(Box<Expression>, String),
    Not(Box<Expression>),
    /// Operands of `&&`, any number on one level.
    All(Vec<Expression>),
    /// Operands of `||`.
    Any(Vec<Expression>),
    /// Two values, and the column of the operator.
    Compare(Comparison, usize, Box<Expression>, Box<Expression>),
    Length(Box<Expression>),
    /// A test whether a string begins or ends with another.
    Affix(Affix, Box<Expression>, Box<Expression>),
    /// A test of each entity. It is false for no entities.
    Each {
        entities: Box<Expression>,
        name: String,
        holds: Box<Expression>,
    },
}

impl Node {
    fn tallest_part(&self) -> usize {
        match self {
            Self::Text(_) | Self::Number(_) | Self::Truth(_) | Self::Name(_) => 0,
            Self::Field(of, _) => of.height,
            Self::Not(inner) | Self::Length(inner) => inner.height,
            Self::All(parts) | Self::Any(parts) => parts.iter().map(|part| part.height).max().unwrap_or(0),
            Self::Compare(_, _, left, right) | Self::Affix(_, left, right) => left.height.max(right.height),
            Self::Each { entities, holds, .. } => entities.height.max(holds.height),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affix {
    Start,
    End,
}

/// Operators by precedence, the weakest first.
const LEVELS: [&[&str]; 4] = [&["||"], &["&&"], &["==", "!="], &["<", "<=", ">", ">="]];

pub(super) fn parse(query: &str) -> Result<Expression, QueryError> {
    let mut parser = Parser { tokens: tokens(query)?.into_iter().peekable(), end: 1, depth: 0, loops: 0 };
    let goal = parser.expression()?;
    match parser.next() {
        (_, Token::End) => Ok(goal),
        (column, other) => {
            let reason = format!("an operator or the end expected, not {}", other.shown());
            Err(QueryError::new(column, reason))
        }
    }
}

struct Parser {
    tokens: Peekable<IntoIter<(usize, Token)>>,
    /// The column of the end, after parsing.
    end: usize,
    depth: usize,
    loops: usize,
}

impl Parser {
    fn next(&mut self) -> (usize, Token) {
        let next = self.tokens.next().unwrap_or((self.end, Token::End));
        self.end = next.0;
        next
    }

    /// Takes one of some operators, if it is next.
    fn take(&mut self, signs: &[&str]) -> Option<(usize, &'static str)> {
        match self.tokens.peek() {
            Some((column, Token::Sign(sign))) if signs.contains(sign) => {
                let found = (*column, *sign);
                self.next();
                Some(found)
            }
            _ => None,
        }
    }

    fn want(&mut self, sign: &str) -> Result<(), QueryError> {
        match self.next() {
            (_, Token::Sign(found)) if found == sign => Ok(()),
            (column, other) => {
                Err(QueryError::new(column, format!("`{sign}` expected, not {}", other.shown())))
            }
        }
    }

    fn expression(&mut self) -> Result<Expression, QueryError> {
        self.level(&LEVELS)
    }

    /// Parses operands of higher precedence, joined by a level's operators.
    fn level(&mut self, levels: &[&[&str]]) -> Result<Expression, QueryError> {
        let Some((signs, more)) = levels.split_first() else { return self.operand() };
        let mut left = self.level(more)?;
        let joined = match signs {
            ["&&"] => Node::All,
            ["||"] => Node::Any,
            _ => {
                while let Some((at, sign)) = self.take(signs) {
                    let right = self.level(more)?;
                    left = Expression::new(left.column, compared(sign, at, left, right))?;
                }
                return Ok(left);
            }
        };
        let mut others = Vec::new();
        while self.take(signs).is_some() {
            others.push(self.level(more)?);
        }
        if others.is_empty() {
            return Ok(left);
        }
        let column = left.column;
        Expression::new(column, joined([left].into_iter().chain(others).collect()))
    }

    /// Parses a value, within the bound of nesting.
    fn operand(&mut self) -> Result<Expression, QueryError> {
        self.depth += 1;
        let operand = self.bounded();
        self.depth -= 1;
        operand
    }

    fn bounded(&mut self) -> Result<Expression, QueryError> {
        let (column, token) = self.next();
        if self.depth > MAX_DEPTH {
            return Err(too_deep(column));
        }
        let node = match token {
            Token::Text(text) => Node::Text(text),
            Token::Number(number) => Node::Number(number),
            Token::Truth(truth) => Node::Truth(truth),
            Token::Sign("!") => Node::Not(self.operand()?.into()),
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.want(")")?;
                return Ok(Expression { column, ..inner });
            }
            Token::Name(name) if self.take(&["("]).is_some() => self.call(column, &name)?,
            Token::Name(name) => return self.name(column, name),
            Token::Sign(_) | Token::End => {
                let reason = format!("a value expected, not {}", token.shown());
                return Err(QueryError::new(column, reason));
            }
        };
        Expression::new(column, node)
    }

    /// Parses a name, or fields of the named entity.
    fn name(&mut self, column: usize, name: String) -> Result<Expression, QueryError> {
        let mut found = Expression::new(column, Node::Name(name))?;
        while self.take(&["."]).is_some() {
            match self.next() {
                (_, Token::Name(field)) => {
                    found = Expression::new(column, Node::Field(found.into(), field))?;
                }
                (at, other) => {
                    return Err(QueryError::new(at, format!("a field expected, not {}", other.shown())));
                }
            }
        }
        Ok(found)
    }

    /// Parses a function's arguments, after the opening parenthesis.
    fn call(&mut self, column: usize, function: &str) -> Result<Node, QueryError> {
        let node = match function {
            "len" => Node::Length(self.expression()?.into()),
            "startsWith" => self.affix(Affix::Start)?,
            "endsWith" => self.affix(Affix::End)?,
            "forEach" => self.each(column)?,
            _ => {
                let reason =
                    format!("unknown function {function:?}; known are len, startsWith, endsWith and forEach");
                return Err(QueryError::new(column, reason));
            }
        };
        self.want(")")?;
        Ok(node)
    }

    fn affix(&mut self, affix: Affix) -> Result<Node, QueryError> {
        let text = self.expression()?;
        self.want(",")?;
        Ok(Node::Affix(affix, text.into(), self.expression()?.into()))
    }

    fn each(&mut self, column: usize) -> Result<Node, QueryError> {
        if self.loops == MAX_LOOPS {
            let reason = format!("more than {MAX_LOOPS} `forEach` are nested");
            return Err(QueryError::new(column, reason));
        }
        let entities = self.expression()?;
        self.want(",")?;
        let name = match self.next() {
            (_, Token::Name(name)) => name,
            (at, other) => {
                let reason = format!("a name and `=>` expected, not {}", other.shown());
                return Err(QueryError::new(at, reason));
            }
        };
        self.want("=>")?;
        self.loops += 1;
        let holds = self.expression();
        self.loops -= 1;
        Ok(Node::Each { entities: entities.into(), name, holds: holds?.into() })
    }
}

fn compared(sign: &str, at: usize, left: Expression, right: Expression) -> Node {
    let comparison = match sign {
        "!=" => Comparison::Unequal,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        ">" => Comparison::More,
        ">=" => Comparison::MoreOrEqual,
        _ => Comparison::Equal,
    };
    Node::Compare(comparison, at, left.into(), right.into())
}
