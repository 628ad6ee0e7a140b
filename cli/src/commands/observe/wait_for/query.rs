//! Juju's query language, `wait-for application mysql --query 'status=="active" && len(units)>=3'`.
//!
//! A query is parsed and checked once, before the wait; an error names its column. After that it cannot fail. It is the
//! operator's own, and bounded all the same: in length, in depth, and in nested loops.

mod check;
mod entity_kind;
mod parse;
mod scope;
mod status_entity;
mod summary;
mod token;

use std::fmt;

pub(super) use self::{entity_kind::EntityKind, status_entity::StatusEntity};
use self::{parse::Expression, scope::Scope};

/// The longest query, in bytes.
const MAX_LENGTH: usize = 4 << 10;

/// The deepest nesting of expressions, in parentheses or as a chain: each level takes stack.
const MAX_DEPTH: usize = 32;

/// The deepest nesting of `forEach`: enough to lead from a model to its units' machines.
const MAX_LOOPS: usize = 3;

/// A goal for entities of one kind.
#[derive(Debug, Clone)]
pub(super) struct Query {
    kind: EntityKind,
    goal: Expression,
}

/// An error of a query, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryError {
    /// The column in characters, from 1.
    column: usize,
    reason: String,
}

impl QueryError {
    fn new(column: usize, reason: impl Into<String>) -> Self {
        Self { column, reason: reason.into() }
    }

    /// Formats the reason, and the query with a mark under the place.
    pub(super) fn shown(&self, query: &str) -> String {
        // The mark needs the query on one line.
        let line: String = query.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let before = " ".repeat(self.column.saturating_sub(1));
        format!("invalid query: {self}\n  {line}\n  {before}^")
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.reason, self.column)
    }
}

impl std::error::Error for QueryError {}

impl Query {
    /// Parses a query about entities of a kind.
    pub(super) fn new(text: &str, kind: EntityKind) -> Result<Self, QueryError> {
        if text.len() > MAX_LENGTH {
            let reason = format!("it has {} bytes, at most {MAX_LENGTH} are allowed", text.len());
            return Err(QueryError::new(1, reason));
        }
        let goal = parse::parse(text)?;
        check::check(&goal, kind)?;
        Ok(Self { kind, goal })
    }

    /// Returns true if the query holds for an entity.
    pub(super) fn holds(&self, entity: StatusEntity<'_>) -> bool {
        debug_assert_eq!(entity.kind(), self.kind, "a query is asked of what it is about");
        Scope::of(entity).value(&self.goal).is_something()
    }

    /// Returns the fields that the query names, for YAML.
    pub(super) fn summary(&self, entity: StatusEntity<'_>) -> serde_json::Value {
        summary::summary(&self.goal, entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::status::fixture;

    /// Evaluates a query on the unsettled model, the application wordpress, the unit mysql/0 or the machine 10 in it.
    fn holds(kind: EntityKind, query: &str) -> bool {
        let status = fixture::unsettled();
        let entity = match kind {
            EntityKind::Model => StatusEntity::model(&status),
            EntityKind::Application => StatusEntity::application(&status, "wordpress").unwrap(),
            EntityKind::Unit => StatusEntity::unit(&status, "mysql/0").unwrap(),
            EntityKind::Machine => StatusEntity::machine(&status, "10").unwrap(),
        };
        Query::new(query, kind).unwrap_or_else(|error| panic!("{query}: {error}")).holds(entity)
    }

    #[test]
    fn what_is_asked_is_told() {
        for (kind, query, expected) in [
            // Juju's default goals.
            (EntityKind::Model, r#"life=="alive" && status=="available""#, false),
            (EntityKind::Application, r#"life=="alive" && status=="active""#, false),
            (EntityKind::Unit, r#"life=="alive" && workload-status=="active""#, true),
            (EntityKind::Machine, r#"life=="alive" && status=="started""#, false),
            // All fields.
            (EntityKind::Model, r#"name == "blog" && !is-controller && status == "destroying""#, true),
            (EntityKind::Application, r#"name == "wordpress" && life == "dying" && exposed"#, true),
            (EntityKind::Application, r#"startsWith(charm-url, "local:wordpress-") && min-units == 0"#, true),
            (EntityKind::Application, r#"subordinate || workload-version == """#, false),
            (EntityKind::Unit, r#"name == "mysql/0" && application == "mysql" && base == "wasi@0.2""#, true),
            (EntityKind::Unit, r#"machine-id == "0" && principal == "" && !subordinate"#, true),
            (EntityKind::Unit, r#"public-address == "10.0.0.1" && private-address == public-address"#, true),
            (
                EntityKind::Unit,
                r#"agent-status == "idle" && endsWith(workload-message, "accounts: 1")"#,
                true,
            ),
            (
                EntityKind::Machine,
                r#"id == "10" && agent-status == "down" && len(instance-status) > 3"#,
                true,
            ),
            (EntityKind::Machine, r#"container-type == "" && base == "wasi@0.2""#, true),
            // Collections.
            (EntityKind::Application, "len(units) == 2 && len(machines) == 2", true),
            (EntityKind::Unit, "len(machines) == 1", true),
            (EntityKind::Model, "len(applications) == 3 && len(units) == 5 && len(machines) == 4", true),
            (EntityKind::Application, r#"forEach(units, unit => startsWith(unit.name, "wordpress/"))"#, true),
            (EntityKind::Application, r#"forEach(units, u => u.workload-status == "waiting")"#, false),
            (
                EntityKind::Model,
                r#"forEach(applications, a => forEach(a.units, u => u.application == a.name))"#,
                true,
            ),
            (EntityKind::Model, r#"forEach(units, u => u.name != "proxy/0" || u.subordinate)"#, true),
            (EntityKind::Model, r#"forEach(units, u => u.name != "proxy/0" || len(u.machines) == 1)"#, true),
            // Operators and their order.
            (EntityKind::Machine, "true || false && false", true),
            (EntityKind::Machine, "(true || false) && false", false),
            (EntityKind::Machine, "!false == true", true),
            (EntityKind::Machine, "1 < 2 && 2 <= 2.0 && 3 > 2.5 && 2 >= 2 && 1 != 2", true),
            (EntityKind::Machine, r#""a" < "b" && !("b" < "a")"#, true),
            (EntityKind::Machine, r#"TRUE && id == "10""#, true),
            // A value that is no boolean counts as true or false.
            (EntityKind::Application, "len(units)", true),
            (EntityKind::Machine, "container-type", false),
            (EntityKind::Machine, "0.5", false),
            (EntityKind::Model, "forEach(units, u => len(u.machines))", true),
            (EntityKind::Model, "forEach(units, u => u.principal)", false),
            (EntityKind::Model, "forEach(units, u => u.name)", true),
        ] {
            assert_eq!(holds(kind, query), expected, "{query}");
        }
    }

    #[test]
    fn as_many_conditions_as_fit_stand_side_by_side() {
        let chain = |sign: &str| vec!["exposed"; 300].join(sign);
        for query in [chain("&&"), chain("||"), format!("{} || false", chain(" && "))] {
            assert!(holds(EntityKind::Application, &query), "{}", query.len());
        }
    }

    #[test]
    fn nothing_is_true_of_each_of_none() {
        let mut status = fixture::settled();
        status.applications.clear();
        let query = Query::new("forEach(applications, a => true)", EntityKind::Model).unwrap();
        assert!(!query.holds(StatusEntity::model(&status)));
    }

    #[test]
    fn each_mistake_is_told_with_its_column() {
        let deep = format!("{}true{}", "(".repeat(40), ")".repeat(40));
        let denied = "!".repeat(40) + "true";
        let fields = "name".to_owned() + &".name".repeat(40);
        let compared = "1".to_owned() + &"<1".repeat(40);
        let loops = "forEach(units, a => ".repeat(4) + "true" + &")".repeat(4);
        for (query, column, reason) in [
            ("", 1, "a value expected, not the end"),
            ("status ==", 10, "a value expected, not the end"),
            ("status = \"active\"", 8, "unknown operator `=`: write `==`"),
            ("exposed & exposed", 9, "unknown operator `&`: write `&&`"),
            ("exposed | exposed", 9, "unknown operator `|`: write `||`"),
            ("status == \"active", 11, "a string is not closed"),
            ("status == 'active'", 11, "unexpected character \"'\": texts stand in double quotes"),
            ("status ~ 1", 8, "unexpected character '~'"),
            ("1.2.3 == 1", 1, "invalid number \"1.2.3\""),
            ("(exposed", 9, "`)` expected, not the end"),
            ("exposed exposed", 9, "an operator or the end expected, not \"exposed\""),
            ("stauts == \"active\"", 1, "an application has no \"stauts\""),
            ("forEach(units, u => u.status == \"x\")", 21, "a unit has no \"status\""),
            ("units.name == \"a\"", 1, "units is a list: `forEach(units, one => one.name ...)`"),
            ("status.name == \"a\"", 1, "a string has no fields"),
            ("length(units)", 1, "unknown function \"length\""),
            ("len(units, units)", 10, "`)` expected, not `,`"),
            ("len(exposed)", 5, "a boolean has no length"),
            ("startsWith(name, 1)", 18, "a string expected, not a number"),
            ("forEach(units, 1)", 16, "a name and `=>` expected, not 1"),
            ("forEach(units, u.name)", 17, "`=>` expected, not `.`"),
            ("forEach(name, u => true)", 9, "a list of entities expected, not a string"),
            ("name && exposed", 1, "a boolean expected, not a string"),
            ("!name", 2, "a boolean expected, not a string"),
            ("status == 1", 8, "a string and a number are never equal"),
            ("units == units", 1, "several entities cannot be compared"),
            ("exposed < true", 1, "a boolean is not less or more than another"),
            ("units", 1, "a boolean expected, not several entities"),
            (&deep, 33, "it is nested deeper than 32 levels"),
            (&denied, 33, "it is nested deeper than 32 levels"),
            (&fields, 1, "it is nested deeper than 32 levels"),
            (&compared, 1, "it is nested deeper than 32 levels"),
            ("forEach(units, u => units)", 21, "a boolean expected, not several entities"),
            (&loops, 61, "more than 3 `forEach` are nested"),
        ] {
            let error = Query::new(query, EntityKind::Application).unwrap_err();
            assert_eq!((error.column, error.reason.split(';').next().unwrap()), (column, reason), "{query}");
        }
        let long = format!("status == \"{}\"", "a".repeat(5_000));
        assert!(Query::new(&long, EntityKind::Application).is_err());
        let error = Query::new("exposed &&\nfoo", EntityKind::Application).unwrap_err();
        let shown = error.shown("exposed &&\nfoo");
        assert!(shown.ends_with(" at column 12\n  exposed && foo\n             ^"), "{shown}");
    }

    #[test]
    fn a_summary_has_what_was_asked_for() {
        let status = fixture::settled();
        let text = r#"life == "alive" && len(units) == 2 && forEach(units, u => u.workload-status == "active" && exposed)"#;
        let query = Query::new(text, EntityKind::Application).unwrap();
        let unit = serde_json::json!({"workload-status": "active"});
        assert_eq!(
            query.summary(StatusEntity::application(&status, "wordpress").unwrap()),
            serde_json::json!({
                "properties": {"exposed": true, "life": "alive"},
                "units": {"wordpress/10": unit, "wordpress/2": unit},
            })
        );
    }
}
