//! Commands of Pebble's own command line, which operators of charms with containers know. Here they need no program in the
//! image.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::pebble_api::{Answer, Api, ContainerError};

/// The lines of the log that are shown, unless the operator asks for another number.
const LINES: u32 = 30;

const USAGE: &str = "use one of: pebble services [NAME...], checks [NAME...], plan, logs [-n LINES] [SERVICE...], \
                     notices, start SERVICE..., stop SERVICE..., restart SERVICE..., replan";

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PebbleCommand {
    Services(Vec<String>),
    Checks(Vec<String>),
    Plan,
    Logs { services: Vec<String>, lines: u32 },
    Notices,
    Act { action: String, services: Vec<String> },
}

#[derive(Deserialize)]
struct LogLine {
    time: String,
    service: String,
    message: String,
}

impl PebbleCommand {
    /// Parses the words after `pebble`. The error says what there is.
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let usage = || USAGE.to_owned();
        let (verb, names) = words.split_first().ok_or_else(usage)?;
        if let Some(odd) = names.iter().find(|name| !is_plain(name)) {
            return Err(format!("{odd:?} is no name of a service or check"));
        }
        let names = names.to_vec();
        match (verb.as_str(), names.as_slice()) {
            ("services", _) => Ok(Self::Services(names)),
            ("checks", _) => Ok(Self::Checks(names)),
            ("plan", []) => Ok(Self::Plan),
            ("notices", []) => Ok(Self::Notices),
            ("logs", [flag, lines, services @ ..]) if flag == "-n" => {
                let lines = lines.parse().map_err(|_| format!("{lines:?} is no number of lines"))?;
                Ok(Self::Logs { services: services.to_vec(), lines })
            }
            ("logs", services) => Ok(Self::Logs { services: services.to_vec(), lines: LINES }),
            ("replan", []) | ("start" | "stop" | "restart", [_, ..]) => {
                Ok(Self::Act { action: verb.clone(), services: names })
            }
            _ => Err(usage()),
        }
    }

    /// Carries the command out, and returns its output.
    pub(super) async fn carry_out(&self, api: &Api<'_>) -> Result<String, ContainerError> {
        match self {
            Self::Services(names) => {
                let listed = list(api, "/v1/services").await?;
                let columns = ["name", "startup", "current", "current-since"];
                Ok(table(&["Service", "Startup", "Current", "Since"], &columns, &named(listed, names)?))
            }
            Self::Checks(names) => {
                let listed = list(api, "/v1/checks").await?;
                let columns = ["name", "level", "startup", "status", "failures", "threshold"];
                let titles = ["Check", "Level", "Startup", "Status", "Failures", "Threshold"];
                Ok(table(&titles, &columns, &named(listed, names)?))
            }
            Self::Plan => {
                let plan: Answer<String> = api.ask("GET", "/v1/plan?format=yaml", "").await?;
                Ok(plan.result)
            }
            Self::Logs { services, lines } => {
                let mut path = format!("/v1/logs?n={lines}");
                for service in services {
                    path += &format!("&services={service}");
                }
                let line = |line: &str| {
                    let LogLine { time, service, message } = serde_json::from_str(line).ok()?;
                    Some(format!("{time} [{service}] {message}\n"))
                };
                Ok(api.text(&path).await?.lines().filter_map(line).collect())
            }
            Self::Notices => {
                let listed = list(api, "/v1/notices?users=all").await?;
                let columns = ["id", "type", "key", "occurrences", "last-repeated"];
                Ok(table(&["ID", "Type", "Key", "Occurrences", "Repeated"], &columns, &listed))
            }
            Self::Act { action, services } => {
                let body = json!({"action": action, "services": services}).to_string();
                let begun: Answer<Value> = api.ask("POST", "/v1/services", &body).await?;
                let Some(change) = begun.change else { return Ok(String::new()) };
                match api.wait(&change).await?.err {
                    Some(error) => Err(ContainerError::Refused(error)),
                    None => Ok(String::new()),
                }
            }
        }
    }
}

/// Returns true for words that stand in a query as they are.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

async fn list(api: &Api<'_>, path: &str) -> Result<Vec<Value>, ContainerError> {
    let listed: Answer<Vec<Value>> = api.ask("GET", path, "").await?;
    Ok(listed.result)
}

/// Returns the entries with these names; all if there are none.
fn named(mut listed: Vec<Value>, names: &[String]) -> Result<Vec<Value>, ContainerError> {
    let name = |entry: &Value| entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(missing) = names.iter().find(|wanted| !listed.iter().any(|entry| name(entry) == **wanted)) {
        return Err(ContainerError::Refused(format!("there is no {missing:?}")));
    }
    listed.retain(|entry| names.is_empty() || names.contains(&name(entry)));
    Ok(listed)
}

fn table(titles: &[&str], columns: &[&str], entries: &[Value]) -> String {
    let cell = |entry: &Value, column: &str| match entry.get(column) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let mut rows: Vec<Vec<String>> = vec![titles.iter().map(|title| (*title).to_owned()).collect()];
    rows.extend(entries.iter().map(|entry| columns.iter().map(|column| cell(entry, column)).collect()));
    let width = |index: usize| {
        rows.iter().filter_map(|row| row.get(index)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<PebbleCommand, String> {
        PebbleCommand::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_are_those_that_are_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(parse("services"), Ok(PebbleCommand::Services(vec![])));
        assert_eq!(parse("checks up"), Ok(PebbleCommand::Checks(names(&["up"]))));
        let logs = |services: &[&str], lines| Ok(PebbleCommand::Logs { services: names(services), lines });
        assert_eq!(parse("logs -n 5 web"), logs(&["web"], 5));
        assert_eq!(parse("logs web"), logs(&["web"], LINES));
        let act = |action: &str, services: &[&str]| {
            Ok(PebbleCommand::Act { action: action.to_owned(), services: names(services) })
        };
        assert_eq!(parse("restart web"), act("restart", &["web"]));
        assert_eq!(parse("replan"), act("replan", &[]));
        for line in ["", "frob", "restart", "replan web", "plan x"] {
            assert_eq!(parse(line), Err(USAGE.to_owned()), "{line}");
        }
        for line in ["services a&b=c", "logs -n x", "stop a/b"] {
            assert!(parse(line).unwrap_err().contains("is no n"), "{line}");
        }
    }

    #[test]
    fn a_table_has_a_column_for_each_title() {
        let listed = vec![json!({"name": "web", "failures": 2}), json!({"name": "a", "level": "alive"})];
        let shown = table(&["Check", "Level", "Failures"], &["name", "level", "failures"], &listed);
        assert_eq!(shown, "Check  Level  Failures\nweb    -      2\na      alive  -\n");
        assert_eq!(named(listed.clone(), &["a".to_owned()]).unwrap(), listed[1..]);
        assert!(named(listed, &["b".to_owned()]).is_err());
    }
}
