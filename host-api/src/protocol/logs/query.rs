//! The query that readers of a log send, and its evaluation, which the controller does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LogLevel, LogLine};
use crate::glob::glob;

/// A query for log lines. A line must match one element of each non-empty list of inclusions, and no exclusion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct LogQuery {
    /// The largest number of existing lines, of which the newest count; none means ten, or all with `replay`.
    pub tail: Option<u32>,
    /// True to read all existing lines.
    pub replay: bool,
    /// True to go on with new lines as units write them.
    pub follow: bool,
    /// The entities: a unit (`mysql/0`), an application (`mysql`), a machine (`0`) or an entity's tag
    /// (`unit-mysql-0`), each with `*` as a wildcard. Empty means all.
    pub include: Vec<String>,
    /// The entities to leave out.
    pub exclude: Vec<String>,
    /// The modules, with those below them (`unit`, `unit.mysql/0`); empty means all.
    pub include_module: Vec<String>,
    /// The modules to leave out, with those below them.
    pub exclude_module: Vec<String>,
    /// The lowest severity.
    pub level: Option<LogLevel>,
}

impl LogQuery {
    /// Returns true if the line matches the query.
    pub fn admits(&self, line: &LogLine) -> bool {
        let below = |module: &String| is_below(&line.module, module);
        self.level.is_none_or(|level| line.level >= level)
            && self.admits_entity(&line.entity)
            && (self.include_module.is_empty() || self.include_module.iter().any(below))
            && !self.exclude_module.iter().any(below)
    }

    /// Returns true if lines of an entity may match the query.
    pub fn admits_entity(&self, entity: &str) -> bool {
        let of = |wanted: &String| is_of(entity, wanted);
        (self.include.is_empty() || self.include.iter().any(of)) && !self.exclude.iter().any(of)
    }

    /// Returns true if lines of a module, or of those below it, may match the query.
    pub fn admits_below(&self, module: &str) -> bool {
        let meets = |named: &String| is_below(module, named) || is_below(named, module);
        (self.include_module.is_empty() || self.include_module.iter().any(meets))
            && !self.exclude_module.iter().any(|above| is_below(module, above))
    }
}

/// Returns true if an entity's tag matches an operator's pattern.
fn is_of(tag: &str, wanted: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(wanted) {
        return tag.strip_prefix("machine-") == Some(wanted);
    }
    let unit = tag.strip_prefix("unit-").and_then(|unit| unit.rsplit_once('-'));
    let unit = unit.filter(|(_, number)| is_number(number));
    match (wanted.split_once('/'), unit) {
        (Some((of, number)), Some((application, own))) => glob(of, application) && glob(number, own),
        (None, Some((application, _))) if glob(wanted, application) => true,
        _ => glob(wanted, tag),
    }
}

/// Returns true if a module is `above` or below it; dots join a module's parts.
fn is_below(module: &str, above: &str) -> bool {
    module.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_may_name_units_applications_machines_or_tags() {
        for (wanted, tags) in [
            ("mysql", vec!["unit-mysql-0", "unit-mysql-1", "unit-mysql-10"]),
            ("mysql/1", vec!["unit-mysql-1"]),
            ("mysql/*", vec!["unit-mysql-0", "unit-mysql-1", "unit-mysql-10"]),
            ("unit-mysql-1", vec!["unit-mysql-1"]),
            ("unit-mysql-1*", vec!["unit-mysql-1", "unit-mysql-10", "unit-mysql-1a-0"]),
            ("my-sql", vec!["unit-my-sql-0"]),
            ("*sql", vec!["unit-mysql-0", "unit-mysql-1", "unit-mysql-10", "unit-my-sql-0"]),
            ("0", vec!["machine-0"]),
            ("machine-0", vec!["machine-0"]),
            ("my", vec![]),
        ] {
            let all = [
                "unit-mysql-0",
                "unit-mysql-1",
                "unit-mysql-10",
                "unit-mysql-1a-0",
                "unit-my-sql-0",
                "machine-0",
            ];
            let found: Vec<_> = all.into_iter().filter(|tag| is_of(tag, wanted)).collect();
            assert_eq!(found, tags, "{wanted}");
        }
    }

    #[test]
    fn what_is_left_out_wins_over_what_is_asked_for() {
        let line = LogLine {
            entity: "unit-my-sql-0".into(),
            at: crate::Timestamp::UNIX_EPOCH,
            level: LogLevel::Info,
            module: "unit.my-sql/0.install".into(),
            message: String::new(),
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let check = |include: &[&str], exclude: &[&str], modules: &[&str], without: &[&str]| {
            let query = LogQuery {
                include: texts(include),
                exclude: texts(exclude),
                include_module: texts(modules),
                exclude_module: texts(without),
                ..LogQuery::default()
            };
            query.admits(&line)
        };
        assert!(check(&[], &[], &[], &[]) && check(&["my-sql"], &["other"], &["unit"], &["juju"]));
        assert!(check(&["other", "my-sql/0"], &[], &["x", "unit.my-sql/0"], &[]));
        assert!(!check(&["other"], &[], &[], &[]) && !check(&["my-sql"], &["my-sql"], &[], &[]));
        assert!(!check(&[], &[], &["uni"], &[]) && !check(&[], &[], &["unit"], &["unit.my-sql/0"]));
        assert!(!LogQuery { level: Some(LogLevel::Error), ..LogQuery::default() }.admits(&line));
    }
    #[test]
    fn modules_below_one_may_match_if_either_is_below_the_other() {
        let query = |include: &str, exclude: &str| LogQuery {
            include_module: vec![include.to_owned()],
            exclude_module: vec![exclude.to_owned()],
            ..LogQuery::default()
        };
        assert!(LogQuery::default().admits_below("workload.web"));
        for named in ["workload", "workload.web", "workload.web.server"] {
            assert!(query(named, "workload.web.other").admits_below("workload.web"), "{named}");
            assert!(!query(named, "workload").admits_below("workload.web"), "{named}");
        }
        assert!(!query("workload.web2", "x").admits_below("workload.web"));
        assert!(!query("unit", "x").admits_below("workload.web"));
    }
}
