//! The output of workloads among the lines of a model's log.

use futures_util::{StreamExt as _, stream};
use periapt_client::NdJson;
use periapt_host_api::{
    ErrorCode, UnitName,
    logs::{LogLevel, LogLine, LogQuery},
};

use crate::{
    context::Model,
    error::{Failure, Result},
    follow::workload_logs::{LogTarget, MAX_TARGETS, OpenedOutput, WantedOutput, WorkloadLine},
    print::status::all_units,
};

/// The number of newest lines of a query that names none, as for the log itself.
const LINES: u32 = 10;

/// The units that are asked for their containers at a time.
const AT_ONCE: usize = 16;

/// The containers that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadTargets {
    /// All that the query admits.
    All,
    /// Not all: the others do not run, or their agent is away.
    Some,
}

impl ReadTargets {
    /// Returns the result of a command that has shown all lines that it could.
    pub(super) fn result(self) -> Result<()> {
        match self {
            Self::All => Ok(()),
            Self::Some => Err(Failure::new("the output of some containers is not shown")),
        }
    }
}

/// Opens the output of the containers whose lines a query admits, as lines of a log.
pub(super) async fn open(
    model: &Model,
    query: &LogQuery,
) -> Result<(Vec<(LogTarget, NdJson<LogLine>)>, ReadTargets)> {
    if let Some(level) = query.level.filter(|level| *level > LogLevel::Info) {
        let text =
            format!("the output of workloads has the level INFO: --level {level} leaves out all of it");
        return Err(Failure::misused(text));
    }
    let targets = targets(model, query).await?;
    let tail = query.tail.or((!query.replay).then_some(LINES));
    let wanted = WantedOutput { services: Vec::new(), tail, follow: query.follow };
    let opened = OpenedOutput::open(model, targets, &wanted).await?;
    opened.note_failed();
    let read = if opened.failed.is_empty() { ReadTargets::All } else { ReadTargets::Some };
    let streams = opened.streams.into_iter().map(|(target, lines)| {
        let of = target.clone();
        let lines = lines.map(move |line| line.map(|line| as_log_line(&of, line)));
        (target, Box::pin(lines) as NdJson<LogLine>)
    });
    Ok((streams.collect(), read))
}

/// Returns the containers whose lines the query admits.
async fn targets(model: &Model, query: &LogQuery) -> Result<Vec<LogTarget>> {
    let units = units(model, query).await?;
    if units.len() > MAX_TARGETS {
        let text =
            format!("{} units are too many: the workloads of at most {MAX_TARGETS} are read", units.len());
        return Err(Failure::new(text).with_hint("choose units by --include, such as --include web/0"));
    }
    let asked = units.into_iter().map(|unit| async move {
        let details = match model.client().unit(&model.selector, &unit).await {
            Ok(details) => details,
            // The log has lines of units that are gone.
            Err(error) if error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::NotFound) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(Failure::from(error)),
        };
        let containers = details.containers.into_keys();
        let containers = containers.filter(|container| query.admits_below(&format!("workload.{container}")));
        Ok(containers.map(|container| LogTarget { unit: unit.clone(), container }).collect())
    });
    let mut asked = std::pin::pin!(stream::iter(asked).buffered(AT_ONCE));
    let mut targets: Vec<LogTarget> = Vec::new();
    while let Some(of_unit) = asked.next().await {
        targets.extend(of_unit?);
    }
    match targets.is_empty() {
        true => Err(Failure::new("no chosen unit has a container that is chosen")),
        false => Ok(targets),
    }
}

/// Returns the units whose lines the query admits. Units that are named in full need no list of the model's.
async fn units(model: &Model, query: &LogQuery) -> Result<Vec<UnitName>> {
    let named: Option<Vec<UnitName>> = query.include.iter().map(|entity| named(entity)).collect();
    let units = match named {
        Some(mut named) if !named.is_empty() => {
            named.sort();
            named.dedup();
            named
        }
        _ => all_units(&model.client().status(&model.selector).await?)?,
    };
    Ok(units.into_iter().filter(|unit| query.admits_entity(&tag(unit))).collect())
}

/// Returns the unit that an operator names as a unit or by its tag.
fn named(entity: &str) -> Option<UnitName> {
    let of_tag = || {
        let (application, number) = entity.strip_prefix("unit-")?.rsplit_once('-')?;
        format!("{application}/{number}").parse().ok()
    };
    entity.parse().ok().or_else(of_tag)
}

fn tag(unit: &UnitName) -> String {
    format!("unit-{}-{}", unit.application(), unit.number())
}

fn as_log_line(
    LogTarget { unit, container }: &LogTarget,
    WorkloadLine { at, line }: WorkloadLine,
) -> LogLine {
    LogLine {
        entity: tag(unit),
        at,
        level: LogLevel::Info,
        module: format!("workload.{container}.{}", line.service),
        message: line.message,
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::workload_log::WorkloadLogLine;

    use super::*;

    #[test]
    fn output_is_a_line_of_the_log_by_its_unit_container_and_service() {
        let target = LogTarget { unit: "my-sql/0".parse().unwrap(), container: "db".parse().unwrap() };
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let line = WorkloadLogLine { time: String::new(), service: "sql".into(), message: "ready".into() };
        let line = as_log_line(&target, WorkloadLine { at, line });
        let query = |module: &str| LogQuery {
            include: vec!["my-sql/0".to_owned()],
            include_module: vec![module.to_owned()],
            ..LogQuery::default()
        };
        assert_eq!((line.entity.as_str(), line.message.as_str()), ("unit-my-sql-0", "ready"));
        assert!(query("workload.db").admits(&line) && query("workload.db.sql").admits(&line));
        assert!(!query("unit").admits(&line));
    }

    #[test]
    fn a_unit_is_named_by_its_name_or_its_tag() {
        let name = |entity: &str| named(entity).map(|unit| unit.to_string());
        for entity in ["my-sql/0", "unit-my-sql-0"] {
            assert_eq!(name(entity).as_deref(), Some("my-sql/0"));
        }
        for entity in ["my-sql", "my-sql/*", "unit-my-sql-*", "machine-0", "0"] {
            assert_eq!(name(entity), None, "{entity}");
        }
    }
}
