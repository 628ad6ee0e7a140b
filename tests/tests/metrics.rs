//! `docs/metrics.md` is generated from the tables of metrics, and the dashboard queries existing metrics only.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

use std::{collections::BTreeSet, fs, path::PathBuf};

use periapt_telemetry::metrics::{Definition, markdown};
use periapt_tests::{Installation, Scrape};
use serde_json::Value;

/// The services with a table of metrics.
const SERVICES: &[(&str, &[Definition])] =
    &[("The controller", periapt_controller::metrics::TABLE), ("An agent", periapt_agent::metrics::TABLE)];

const HEAD: &str = "\
# Metrics

The controller answers `GET /metrics` on its socket, in Prometheus' text form
(`curl --unix-socket DIRECTORY/control.socket http://localhost/metrics`). An agent does so at the
loopback address of `agent run --metrics-address 127.0.0.1:17071`, for all its models:

    scrape_configs:
      - job_name: periapt
        static_configs:
          - targets: ['127.0.0.1:17071']

[grafana/periapt.json](grafana/periapt.json) is a dashboard for Grafana with all of them. Counters
and histograms begin at zero when a process starts. The values of each label are a closed list, and
no label names a model, an application or a unit: what happened to one unit is in its trace
([ARCHITECTURE.md](../ARCHITECTURE.md#traces-and-metrics)), its journal and its log.

A test writes this page from the tables in the code:
`PERIAPT_UPDATE=1 cargo nextest run --workspace -E 'test(document)'`.
";

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

#[test]
fn the_document_of_metrics_in_the_repository_is_that_of_the_code() {
    let mut text = HEAD.to_owned();
    for (service, table) in SERVICES {
        text.push_str(&format!("\n## {service}\n\n{}", markdown(table)));
    }
    let path = docs().join("metrics.md");
    if std::env::var_os("PERIAPT_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "docs/metrics.md is out of date: run this test with PERIAPT_UPDATE=1");
}

/// A query of the dashboard.
struct Query {
    panel: String,
    text: String,
    legend: String,
}

fn queries() -> Vec<Query> {
    let dashboard = fs::read_to_string(docs().join("grafana/periapt.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut queries = Vec::new();
    for panel in list(&dashboard, "panels") {
        for target in list(&panel, "targets") {
            let (panel, legend) = (text(&panel, "title"), text(&target, "legendFormat"));
            queries.push(Query { panel, legend, text: text(&target, "expr") });
        }
    }
    queries
}

/// The words of PromQL that the dashboard uses, other than names of metrics and labels.
const WORDS: &[&str] = &["sum", "rate", "increase", "histogram_quantile"];

/// A selector of a metric, with the labels that it names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selector {
    metric: String,
    labels: BTreeSet<String>,
}

/// The parts of a query that must fit the metrics.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    selectors: Vec<Selector>,
    /// The labels by which results are grouped; none: there is no aggregation.
    groups: Option<BTreeSet<String>>,
}

/// Splits a query into names, numbers with units, texts and single characters.
fn tokens(query: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_ascii_alphanumeric() || "_.$:".contains(character);
        let length = match first {
            '"' => rest.get(1..).and_then(|text| text.find('"')).map_or(rest.len(), |end| end + 2),
            first if is_word(first) => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            first => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Reads a query of the subset of PromQL that the dashboard uses: functions, `sum by (...)`, selectors with `=`, ranges.
fn parts(query: &str) -> Result<Parts, String> {
    let mut parts = Parts::default();
    let mut open = Vec::new();
    let tokens = tokens(query);
    let mut tokens = tokens.iter().copied().peekable();
    // Reads the names up to a closing bracket, which are separated by commas; values and `=` are passed over.
    fn names<'a>(
        tokens: &mut impl Iterator<Item = &'a str>,
        close: &str,
    ) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::new();
        for token in tokens {
            match token {
                token if token == close => return Ok(names),
                "," | "=" => {}
                text if text.starts_with('"') => {}
                name => drop(names.insert(name.to_owned())),
            }
        }
        Err(format!("{close} is missing"))
    }
    while let Some(token) = tokens.next() {
        match token {
            "by" => {
                if tokens.next() != Some("(") {
                    return Err("by without its labels".to_owned());
                }
                parts.groups.get_or_insert_default().extend(names(&mut tokens, ")")?);
            }
            "(" | "[" => open.push(token),
            ")" | "]" => match (open.pop(), token) {
                (Some("("), ")") | (Some("["), "]") => {}
                _ => return Err(format!("{token} closes nothing")),
            },
            "," | "$__rate_interval" => {}
            number if number.starts_with(|first: char| first.is_ascii_digit()) => {}
            word if WORDS.contains(&word) => {
                if word == "sum" {
                    parts.groups.get_or_insert_default();
                }
            }
            metric if metric.starts_with(|first: char| first.is_ascii_lowercase()) => {
                let labels = match tokens.next_if_eq(&"{") {
                    Some(_) => names(&mut tokens, "}")?,
                    None => BTreeSet::new(),
                };
                parts.selectors.push(Selector { metric: metric.to_owned(), labels });
            }
            other => return Err(format!("{other} is not understood here")),
        }
    }
    match (open.is_empty(), parts.selectors.is_empty()) {
        (false, _) => Err("a bracket is not closed".to_owned()),
        (_, true) => Err("it asks for no metric".to_owned()),
        _ => Ok(parts),
    }
}

/// Checks a query against the metrics that are exposed, and returns their names.
fn check(query: &Query, exposed: &Scrape) -> Result<Vec<String>, String> {
    let Parts { selectors, groups } = parts(&query.text)?;
    let legend = query.legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    let legend: Vec<&str> = legend.collect();
    for Selector { metric, labels } in &selectors {
        if exposed.samples(metric).is_empty() {
            return Err(format!("nobody exposes {metric}"));
        }
        let has = exposed.labels(metric);
        if let Some(label) =
            labels.iter().chain(groups.iter().flatten()).find(|label| !has.contains(label.as_str()))
        {
            return Err(format!("{metric} has no label {label}"));
        }
        let results: BTreeSet<&str> = match &groups {
            Some(groups) => groups.iter().map(String::as_str).collect(),
            None => has,
        };
        if let Some(label) = legend.iter().find(|label| !results.contains(*label)) {
            return Err(format!("the legend names {label}, which results do not have"));
        }
    }
    Ok(selectors.into_iter().map(|selector| selector.metric).collect())
}

#[test]
fn a_query_for_what_nobody_exposes_is_found() {
    let exposed = Scrape::read("# TYPE a counter\na_total{kind=\"x\"} 1\nb_bucket{le=\"1\"} 2\n").unwrap();
    let checked = |text: &str, legend: &str| {
        let query = Query { panel: String::new(), text: text.to_owned(), legend: legend.to_owned() };
        check(&query, &exposed)
    };
    assert_eq!(
        checked("sum by (kind) (rate(a_total[$__rate_interval]))", "{{kind}}"),
        Ok(vec!["a_total".into()])
    );
    assert!(checked("histogram_quantile(0.9, sum by (le) (rate(b_bucket[5m])))", "9 of 10").is_ok());
    for (text, legend) in [
        ("rate(c_total[5m])", ""),
        ("a_total{unit=\"x\"}", ""),
        ("sum by (unit) (a_total)", ""),
        ("sum(a_total)", "{{kind}}"),
        ("sum(a_total", ""),
        ("sum(a_total)]", ""),
        ("1", ""),
        ("a_total + a_total", ""),
    ] {
        assert!(checked(text, legend).is_err(), "{text}");
    }
}

#[test]
fn each_query_of_the_dashboard_asks_for_what_is_exposed_and_each_metric_is_shown() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let mut agent = periapt.agent("second", ["--metrics-address", "127.0.0.1:0"])?;
    let line = agent.first_line()?;
    let address = line.strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let mut exposed = Scrape::on_socket(&periapt.socket("local"))?;
    exposed.add(Scrape::of(address.unwrap())?);
    let (mut wrong, mut shown) = (Vec::new(), BTreeSet::new());
    for query in queries() {
        match check(&query, &exposed) {
            Ok(names) => shown.extend(names),
            Err(error) => wrong.push(format!("{}: {}: {error}", query.panel, query.text)),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for metric in SERVICES.iter().flat_map(|(_, table)| table.iter()) {
        let is_shown =
            ["", "_bucket", "_count"].iter().any(|end| shown.contains(&format!("{}{end}", metric.name)));
        assert!(is_shown, "{} is on no panel", metric.name);
    }
    Ok(())
}
