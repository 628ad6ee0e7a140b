//! `logs`: the output of a container's services.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use periapt_client::NdJson;
use periapt_host_api::{
    ErrorCode, Timestamp,
    workload_log::{WorkloadLogLine, WorkloadLogQuery},
};

use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    output::{Sink, Text, continued, one_line, to_json},
    parse::container::ContainerRef,
};

/// The number of newest lines that are shown.
const LINES: u32 = 30;

/// Show what the services of a unit's container write
///
/// The container's Pebble keeps the newest output of each service, 100 KiB at most, for as long as the container runs. It
/// is read by the unit's agent, beside all hooks: a unit whose hook runs or has failed has logs, too. It needs write
/// access to the model, as `exec` does.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt logs web/0
  periapt logs web/0:nginx -n 100
  periapt logs web/0:nginx access --follow
  periapt logs web/0 --format json")]
pub(crate) struct Logs {
    /// The unit, and its container if it has several
    #[arg(value_name = "UNIT[:CONTAINER]")]
    container: ContainerRef,
    /// Only lines of these services
    #[arg(value_name = "SERVICE")]
    services: Vec<String>,
    /// The number of newest lines to show; all shows all that are kept
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = tail, default_value_t = Tail::Lines(LINES))]
    tail: Tail,
    /// Go on with new lines as they come
    #[arg(short, long)]
    follow: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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

/// The formats of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// A JSON object per line
    Json,
}

impl Verb for Logs {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let query = WorkloadLogQuery {
            container: self.container.container(&model).await?,
            services: self.services.clone(),
            tail: match self.tail {
                Tail::All => None,
                Tail::Lines(lines) => Some(lines),
            },
            follow: self.follow,
        };
        let mut lines = self.open(&model, &query).await?;
        let mut sink = Sink::new(self.output.as_deref(), context.color)?;
        while let Some(line) = lines.next().await {
            let line = line?;
            let text = match self.format {
                Format::Text => text(&line),
                Format::Json => to_json(&line)?,
            };
            sink.write(&text)?;
        }
        match self.follow {
            true => Err(Failure::new("the container has ended the stream of its logs")
                .with_hint("the same command begins it again, once the container runs")),
            false => Ok(()),
        }
    }
}

impl Logs {
    /// Opens the stream at the controller that the unit's agent is connected to.
    async fn open(&self, model: &Model, query: &WorkloadLogQuery) -> Result<NdJson<WorkloadLogLine>> {
        let others = model.client().urls().await.len().saturating_sub(1);
        let open = || model.client().workload_logs(&model.selector, &self.container.unit, query);
        for _ in 0..others {
            match open().await {
                Err(error) if error.refusal().is_some_and(|refusal| refusal.code == ErrorCode::TryAgain) => {
                    // Another controller of the same log may have the agent.
                    model.client().reconnect().await;
                }
                opened => return Ok(opened?),
            }
        }
        Ok(open().await?)
    }
}

/// Formats a line. Continued lines of a message are indented, so that they cannot pass for other lines.
fn text(line: &WorkloadLogLine) -> Text {
    let time = match line.time.parse::<Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        Err(_) => one_line(&line.time).into_owned(),
    };
    format!("{time} [{}] {}\n", one_line(&line.service), continued(&line.message)).into()
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
        let shown = anstream::adapter::strip_str(&text(&line)).to_string();
        let mut lines = shown.lines();
        assert_eq!(lines.next(), Some("2026-01-02T03:04:05.678Z [web] one"));
        assert!(lines.next().unwrap().starts_with(' '), "{shown}");
    }

    #[test]
    fn a_number_of_lines_may_be_all() {
        assert_eq!((tail("all"), tail("5")), (Ok(Tail::All), Ok(Tail::Lines(5))));
        assert!(tail("-1").is_err() && tail("many").is_err());
    }
}
