//! `debug-log`: the log of units, agents and the controller.

mod workloads;

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::logs::{LogLevel, LogLine, LogQuery};

use crate::{
    commands::{Runtime, Verb},
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    follow::{
        merge::{LineMerge, Merged, StreamEnd},
        workload_logs::note_end,
    },
    output::{LineFormat, Sink, Text, TextStyle, continued, is_watched, one_line, to_json},
    parse::ParseError,
};

/// Show a model's log
///
/// Shows the newest lines, and on a terminal new ones as they come. Entities are named as in the log
/// (unit-mysql-0), as units (mysql/0), as applications (mysql) or as machines (0), with * for anything.
///
/// With --workloads, the output of containers' services is shown among the lines of the log, in order of time, as lines of
/// the unit's entity with the module workload.CONTAINER.SERVICE and the level INFO. The controller keeps none of it: it is
/// read from the units' agents, as by `logs`, and needs write access. At most 64 units and 64 containers are read, and at
/// most 16 containers of one agent: --include and --include-module choose them. -n counts the lines of the log and those
/// of each container.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt debug-log
  periapt debug-log --replay --no-tail
  periapt debug-log -n 100 --include mysql --level WARNING
  periapt debug-log --workloads --include web/0
  periapt debug-log --workloads --include web --include-module workload.nginx --tail")]
pub(crate) struct DebugLog {
    /// Follow with new lines as they come
    #[arg(long, conflicts_with = "no_tail")]
    tail: bool,
    /// Stop after the present lines
    #[arg(long)]
    no_tail: bool,
    /// All present lines
    #[arg(long, conflicts_with = "lines")]
    replay: bool,
    /// The number of newest lines to show
    #[arg(short = 'n', long, value_name = "COUNT")]
    lines: Option<u32>,
    /// Show this many of the newest lines, and stop; 0 shows all
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
    /// Only lines of this entity; may be repeated
    #[arg(short, long, value_name = "ENTITY")]
    include: Vec<String>,
    /// No lines of this entity; may be repeated
    #[arg(short = 'x', long, value_name = "ENTITY")]
    exclude: Vec<String>,
    /// Only lines of this module, or of those below it; may be repeated
    #[arg(long, value_name = "MODULE")]
    include_module: Vec<String>,
    /// No lines of this module, nor of those below it; may be repeated
    #[arg(long, value_name = "MODULE")]
    exclude_module: Vec<String>,
    /// Only lines this important or more
    #[arg(short, long, value_parser = level)]
    level: Option<LogLevel>,
    /// Show the output of containers' services, too
    #[arg(long, conflicts_with = "limit")]
    workloads: bool,
    /// Show dates, too
    #[arg(long)]
    date: bool,
    /// Show milliseconds, too
    #[arg(long)]
    ms: bool,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: LineFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for DebugLog {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let watched = self.output.is_none() && is_watched();
        let follow = self.tail || (!self.no_tail && watched);
        let limit = self.limit.filter(|limit| *limit > 0);
        // 0 means no limit, as in Juju, and not the default limit.
        let all = self.limit == Some(0) && self.lines.is_none();
        let query = LogQuery {
            tail: self.lines.or(if self.replay { None } else { limit }),
            replay: self.replay || all,
            follow,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            include_module: self.include_module.clone(),
            exclude_module: self.exclude_module.clone(),
            level: self.level,
        };
        let mut sources = vec![model.client().logs(&model.selector, &query).await?];
        let (targets, read) = match self.workloads {
            true => workloads::open(&model, &query).await?,
            false => (Vec::new(), workloads::ReadTargets::All),
        };
        let (targets, streams): (Vec<_>, Vec<_>) = targets.into_iter().unzip();
        sources.extend(streams);
        let end = if follow { StreamEnd::Never } else { StreamEnd::AfterPresentLines };
        let mut lines = LineMerge::of(sources, end);
        let mut sink = Sink::new(self.output.as_deref(), context.color)?;
        let mut left = limit.map_or(u64::MAX, u64::from);
        while left > 0 {
            let line = match lines.next().await {
                None => break,
                Some(Merged::Line(_, line)) => line,
                Some(Merged::End(index, end)) => {
                    end?;
                    match index.checked_sub(1) {
                        None if follow => return Err(why_ended(&model).await),
                        Some(workload) if follow => targets.get(workload).into_iter().for_each(note_end),
                        _ => {}
                    }
                    continue;
                }
            };
            // The controller has applied the query to its own lines.
            if !query.admits(&line) {
                continue;
            }
            let text = match self.format {
                LineFormat::Text => self.text(&line),
                LineFormat::Json => to_json(&line)?,
            };
            sink.write(&text)?;
            left -= 1;
        }
        read.result()
    }

    fn runtime(&self) -> Runtime<'_> {
        // A pager reads nothing while its user reads.
        Runtime::TwoThreads
    }
}

/// Returns the reason why a log that is followed has ended: the caller may not see the model any more, the model or the
/// controller is gone, or the controller was started again.
async fn why_ended(model: &Model) -> Failure {
    match model.client().model(&model.selector).await {
        Err(error) => error.into(),
        Ok(_) => Failure::new("the controller has ended the stream of the log")
            .with_hint("the same command begins it again"),
    }
}

impl DebugLog {
    /// Formats a line as Juju does. Continued lines of a message are indented, so that they cannot pass for other
    /// lines.
    fn text(&self, line: &LogLine) -> Text {
        let format = match (self.date, self.ms) {
            (false, false) => "%H:%M:%S",
            (false, true) => "%H:%M:%S%.3f",
            (true, false) => "%Y-%m-%d %H:%M:%S",
            (true, true) => "%Y-%m-%d %H:%M:%S%.3f",
        };
        let style = match line.level {
            LogLevel::Error => TextStyle::Bad,
            LogLevel::Warning => TextStyle::Busy,
            LogLevel::Info => TextStyle::Good,
            LogLevel::Debug | LogLevel::Trace => TextStyle::Faint,
        };
        let parts = [
            format!("{}: {}", one_line(&line.entity), line.at.strftime(format)).into(),
            Text::painted(line.level.as_str(), style),
            format!("{} {}\n", one_line(&line.module), continued(&line.message)).into(),
        ];
        Text::joined(parts, " ")
    }
}

fn level(text: &str) -> Result<LogLevel, ParseError> {
    let wrong =
        |()| ParseError::Form(format!("invalid level {text:?}: TRACE, DEBUG, INFO, WARNING or ERROR"));
    text.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{Command, observe::Observe},
        grammar,
    };

    fn line() -> LogLine {
        LogLine {
            entity: "unit-my-sql-0".into(),
            at: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            level: LogLevel::Info,
            module: "unit.my-sql/0.install".into(),
            message: "made \u{1b}[2J\ttables\nand more".into(),
        }
    }

    fn check(arguments: &[&str], expected: &str) {
        let cli = grammar::read(&[&["periapt", "debug-log"], arguments].concat()).unwrap();
        let Command::Observe(Observe::DebugLog(command)) = cli.command else {
            panic!("debug-log was asked for")
        };
        assert_eq!(anstream::adapter::strip_str(&command.text(&line())).to_string(), expected);
    }

    #[test]
    fn a_line_is_written_as_juju_writes_it_and_steers_no_terminal_and_forges_no_line() {
        let rest = "INFO unit.my-sql/0.install made \\x1b[2J\ttables\n    and more\n";
        check(&[], &format!("unit-my-sql-0: 03:04:05 {rest}"));
        check(&["--date", "--ms"], &format!("unit-my-sql-0: 2026-01-02 03:04:05.678 {rest}"));
    }
}
