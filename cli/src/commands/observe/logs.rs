//! `logs`: the output of a container's services.

use std::path::PathBuf;

use clap::Args;
use periapt_host_api::{ContainerName, Timestamp, workload_log::WorkloadLogLine};
use serde::Serialize;

use crate::{
    commands::{Runtime, Verb},
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    follow::{
        merge::{LineMerge, Merged, StreamEnd},
        workload_logs::{LogTarget, OpenedOutput, WantedOutput, WorkloadLine, note_end},
    },
    output::{LineFormat, Sink, Text, TextStyle, continued, one_line, to_json},
    parse::container::ContainerRef,
};

/// The number of newest lines that are shown.
const LINES: u32 = 30;

/// Show what the services of a unit's containers write
///
/// Without the name of a container, all containers of the unit are shown, in order of time; each line begins with its
/// container if there are several. A container's Pebble keeps the newest output of each service, 100 KiB at most, for as
/// long as the container runs. It is read by the unit's agent, beside all hooks: a unit whose hook runs or has failed has
/// logs, too. It needs write access to the model, as `exec` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt logs web/0
  periapt logs web/0:nginx -n 100
  periapt logs web/0:nginx access --follow
  periapt logs web/0 --format json")]
pub(crate) struct Logs {
    /// The unit, and one of its containers if not all are meant
    #[arg(value_name = "UNIT[:CONTAINER]")]
    container: ContainerRef,
    /// Only lines of these services
    #[arg(value_name = "SERVICE")]
    services: Vec<String>,
    /// The number of newest lines of each container to show; all shows all that are kept
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = tail, default_value_t = Tail::Lines(LINES))]
    tail: Tail,
    /// Go on with new lines as they come
    #[arg(short, long)]
    follow: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: LineFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

/// The number of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    All,
    Lines(u32),
}

impl std::fmt::Display for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Lines(lines) => lines.fmt(f),
        }
    }
}

/// A line as an object.
#[derive(Debug, Serialize)]
struct ShownLine<'a> {
    time: &'a str,
    container: &'a ContainerName,
    service: &'a str,
    message: &'a str,
}

impl<'a> ShownLine<'a> {
    fn of(container: &'a ContainerName, line: &'a WorkloadLogLine) -> Self {
        let WorkloadLogLine { time, service, message } = line;
        Self { time, container, service, message }
    }
}

impl Verb for Logs {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let opened = self.open(&model).await?.with_any()?;
        opened.note_failed();
        let OpenedOutput { streams, failed } = opened;
        let has_several = streams.len() + failed.len() > 1;
        let (targets, streams): (Vec<LogTarget>, Vec<_>) = streams.into_iter().unzip();
        let end = if self.follow { StreamEnd::Never } else { StreamEnd::AfterPresentLines };
        let mut lines = LineMerge::of(streams, end);
        let mut sink = Sink::new(self.output.as_deref(), context.color)?;
        while let Some(next) = lines.next().await {
            match next {
                Merged::Line(index, WorkloadLine { line, .. }) => {
                    let Some(LogTarget { container, .. }) = targets.get(index) else { continue };
                    let shown = match self.format {
                        LineFormat::Json => to_json(&ShownLine::of(container, &line))?,
                        LineFormat::Text if has_several => prefixed(index, container, &line),
                        LineFormat::Text => text(&line).into(),
                    };
                    sink.write(shown)?;
                }
                Merged::End(index, end) => {
                    end?;
                    if let Some(target) = targets.get(index).filter(|_| self.follow && has_several) {
                        note_end(target);
                    }
                }
            }
        }
        if self.follow {
            let text = match has_several {
                true => "all containers have ended the streams of their logs",
                false => "the container has ended the stream of its logs",
            };
            return Err(
                Failure::new(text).with_hint("the same command begins it again, once the container runs")
            );
        }
        match failed.is_empty() {
            true => Ok(()),
            false => Err(Failure::new("the logs of some containers are not shown")),
        }
    }

    fn runtime(&self) -> Runtime<'_> {
        // A pager reads nothing while its user reads.
        Runtime::TwoThreads
    }
}

impl Logs {
    async fn open(&self, model: &Model) -> Result<OpenedOutput> {
        let containers = self.container.containers(model).await?;
        let target = |container| LogTarget { unit: self.container.unit.clone(), container };
        let wanted = WantedOutput {
            services: self.services.clone(),
            tail: match self.tail {
                Tail::All => None,
                Tail::Lines(lines) => Some(lines),
            },
            follow: self.follow,
        };
        OpenedOutput::open(model, containers.into_iter().map(target).collect(), &wanted).await
    }
}

/// Formats a line of one of several containers.
fn prefixed(index: usize, container: &ContainerName, line: &WorkloadLogLine) -> Text {
    let name = Text::painted(&format!("[{container}]"), TextStyle::Source(index));
    Text::joined([name, text(line).into()], " ")
}

/// Formats a line. Continued lines of a message are indented, so that they cannot pass for other lines.
fn text(line: &WorkloadLogLine) -> String {
    let time = match line.time.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => one_line(&line.time).into_owned(),
    };
    format!("{time} [{}] {}\n", one_line(&line.service), continued(&line.message))
}

fn tail(text: &str) -> Result<Tail, String> {
    match text {
        "all" => Ok(Tail::All),
        text => text.parse().map(Tail::Lines).map_err(|_| "a number, or all".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_time_and_its_service_and_cannot_pass_for_another_one() {
        let line = WorkloadLogLine {
            time: "2026-01-02T03:04:05.678901Z".into(),
            service: "web".into(),
            message: "one\n2026-01-02T03:04:05.678Z [db] two".into(),
        };
        let plain = |text: &Text| anstream::adapter::strip_str(text).to_string();
        let (container, first) = ("db".parse().unwrap(), "2026-01-02T03:04:05.678Z [web] one");
        for (shown, first) in [
            (Text::from(text(&line)), first.to_owned()),
            (prefixed(7, &container, &line), format!("[db] {first}")),
        ] {
            let shown = plain(&shown);
            let mut lines = shown.lines();
            assert_eq!(lines.next(), Some(first.as_str()));
            assert!(lines.next().unwrap().starts_with(' '), "{shown}");
        }
        let json = to_json(&ShownLine::of(&container, &line)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((json["container"].as_str(), json["service"].as_str()), (Some("db"), Some("web")));
    }

    #[test]
    fn a_number_of_lines_may_be_all() {
        assert_eq!((tail("all"), tail("5")), (Ok(Tail::All), Ok(Tail::Lines(5))));
        assert!(tail("-1").is_err() && tail("many").is_err());
    }
}
