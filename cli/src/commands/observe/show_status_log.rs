//! `show-status-log`: the past statuses of units, applications and machines.

use clap::Args;
use jiff::{Timestamp, civil::Date};
use periapt_host_api::status::{StatusHistoryEntry, StatusHistoryQuery, StatusHistoryType};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Table, Text, Times, style_of_status, to_the_second},
    parse::ParseError,
};

/// The number of lines without `-n`, `--days` or `--from-date`.
const DEFAULT_LINES: u32 = 20;

/// Show past statuses of a unit, an application or a machine
///
/// The model's max-status-history-age and max-status-history-size bound their age and size. A repeated
/// status appears once, with the time of the last.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt show-status-log mysql/0
  periapt show-status-log mysql/0 --type workload -n 5
  periapt show-status-log mysql --type application --days 3
  periapt show-status-log 2 --type machine --format json")]
pub(crate) struct ShowStatusLog {
    /// A unit, or a name of the kind that --type gives
    #[arg(value_name = "ENTITY")]
    entity: String,
    /// unit (both kinds), juju-unit, workload, application, or machine
    #[arg(long = "type", default_value = "unit", value_name = "TYPE")]
    kind: StatusHistoryType,
    /// The newest LINES; 20, if neither a day nor a number is given
    #[arg(short = 'n', value_name = "LINES", conflicts_with_all = ["days", "from_date"])]
    lines: Option<u32>,
    /// Those of the last DAYS
    #[arg(long, value_name = "DAYS", conflicts_with = "from_date")]
    days: Option<u32>,
    /// Those since a day, as YYYY-MM-DD
    #[arg(long, value_name = "DATE", value_parser = midnight)]
    from_date: Option<Timestamp>,
    /// Those of update-status, too; they never set one, so there are none
    #[arg(long)]
    include_status_updates: bool,
    /// Times as 2026-01-02 15:04:05Z
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ShowStatusLog {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let query = self.query(Timestamp::now())?;
        let history = model.client().status_history(&model.selector, &query).await?;
        if history.entries.is_empty() {
            return Err(Failure::new("no status history available"));
        }
        self.output.print(context.color, &history.entries, |entries| table(entries, Times::of_utc(self.utc)))
    }
}

impl ShowStatusLog {
    fn query(&self, now: Timestamp) -> Result<StatusHistoryQuery> {
        let (entity, kind) = (self.entity.clone(), self.kind);
        if self.lines == Some(0) {
            return Err(Failure::new("-n takes a number of lines, at least 1"));
        }
        let ago = |days: u32| {
            let seconds = now.as_second().saturating_sub(i64::from(days) * 24 * 3600);
            Timestamp::from_second(seconds).unwrap_or(Timestamp::MIN)
        };
        let since = self.from_date.or(self.days.map(ago));
        let tail = self.lines.or(if since.is_some() { None } else { Some(DEFAULT_LINES) });
        Ok(StatusHistoryQuery { entity, kind, tail, since })
    }
}

/// Parses a day, and returns its beginning.
fn midnight(text: &str) -> Result<Timestamp, ParseError> {
    let date: Result<Date, _> = text.parse();
    let date =
        date.map_err(|_| ParseError::Form(format!("invalid date {text:?}: write it as YYYY-MM-DD")))?;
    let midnight = format!("{date}T00:00:00Z").parse();
    midnight.map_err(|_| ParseError::Form(format!("date {text:?} is out of range")))
}

/// Draws the table as Juju does.
fn table(entries: &[StatusHistoryEntry], times: Times) -> Text {
    let time = |at: Timestamp| match times {
        Times::Iso => to_the_second(at),
        Times::ForPeople => at.strftime("%d %b %Y %H:%M:%SZ").to_string(),
    };
    let mut table = Table::new(["Time", "Type", "Status", "Message"]);
    for entry in entries {
        table.row([
            time(entry.since).into(),
            entry.kind.to_string().into(),
            (entry.status.as_str(), style_of_status(&entry.status)).into(),
            (&entry.message).into(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::status::StatusKind;

    use super::*;
    use crate::{
        commands::{Command, observe::Observe},
        grammar,
    };

    fn parsed(arguments: &[&str]) -> Result<ShowStatusLog, String> {
        let all = [&["periapt", "show-status-log"], arguments].concat();
        match grammar::read(&all).map_err(|error| error.to_string())?.command {
            Command::Observe(Observe::ShowStatusLog(command)) => Ok(command),
            _ => Err("another command".to_owned()),
        }
    }

    fn check(arguments: &[&str], tail: Option<u32>, since: Option<&str>) {
        let now = "2026-01-10T12:00:00Z".parse().unwrap();
        let query = parsed(arguments).unwrap().query(now).unwrap();
        assert_eq!((query.tail, query.since), (tail, since.map(|at| at.parse().unwrap())), "{arguments:?}");
    }

    #[test]
    fn a_number_a_span_or_a_day_says_how_much_is_shown() {
        check(&["a/0"], Some(20), None);
        check(&["a/0", "-n", "5"], Some(5), None);
        check(&["a/0", "--days", "2"], None, Some("2026-01-08T12:00:00Z"));
        check(&["a/0", "--from-date", "2026-01-03"], None, Some("2026-01-03T00:00:00Z"));
        for mistake in [
            &["a/0", "-n", "5", "--days", "2"][..],
            &["a/0", "--days", "2", "--from-date", "2026-01-03"],
            &["a/0", "--from-date", "yesterday"],
            &["a/0", "--type", "saas"],
            &[],
        ] {
            assert!(parsed(mistake).is_err(), "{mistake:?}");
        }
        assert!(parsed(&["a/0", "-n", "0"]).unwrap().query(Timestamp::UNIX_EPOCH).is_err());
    }

    #[test]
    fn the_table_is_jujus() {
        let entry = |kind, status: &str, message: &str| StatusHistoryEntry {
            status: status.to_owned(),
            message: message.to_owned(),
            data: serde_json::Map::new(),
            since: "2026-01-02T03:04:05.678Z".parse().unwrap(),
            kind,
        };
        let entries = [
            entry(StatusKind::JujuUnit, "executing", "running install hook"),
            entry(StatusKind::Workload, "active", ""),
        ];
        let plain = |times| anstream::adapter::strip_str(&table(&entries, times)).to_string();
        assert_eq!(
            plain(Times::ForPeople),
            "Time                   Type       Status     Message\n\
             02 Jan 2026 03:04:05Z  juju-unit  executing  running install hook\n\
             02 Jan 2026 03:04:05Z  workload   active\n"
        );
        assert!(plain(Times::Iso).contains("\n2026-01-02 03:04:05Z  workload "), "{}", plain(Times::Iso));
    }
}
