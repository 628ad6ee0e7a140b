//! Metrics: one table for each service, from which its exposition and its documentation are made.
//!
//! The values of all labels are a closed list, and each series is there from the start: a metric costs the same memory
//! whatever happens, and a dashboard shows zero where nothing happened.

use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder, core::Collector,
};

/// The media type of an exposition.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds of times, in seconds: from a hook of microseconds to a compilation of minutes.
pub const SECONDS: &[f64] = &[
    0.000_01, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];
/// Bounds of numbers of things that are handled together.
pub const COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];
/// Bounds of memory, in bytes.
pub const BYTES: &[f64] =
    &[65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0, 16_777_216.0, 67_108_864.0, 268_435_456.0];
/// Bounds of fuel: one unit is about one WebAssembly instruction.
pub const FUEL: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];

/// A row of a table of metrics.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name in Prometheus.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// The unit of its values.
    pub unit: &'static str,
    /// The labels.
    pub labels: &'static [Label],
    /// The meaning.
    pub help: &'static str,
}

/// A label with all its values.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// The name.
    pub name: &'static str,
    /// The values.
    pub values: &'static [&'static str],
}

/// The kind of a metric.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A count, which begins at zero when the process starts.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// Counts of values by size, with the bounds of the sizes.
    Histogram(&'static [f64]),
}

/// A metric that counts.
#[derive(Debug, Clone)]
pub struct Counter(IntCounterVec);

/// A metric that rises and falls.
#[derive(Debug, Clone)]
pub struct Gauge(IntGaugeVec);

/// A metric that counts values by size.
#[derive(Debug, Clone)]
pub struct Histogram(HistogramVec);

impl Counter {
    /// Adds to the count. The labels' values have the table's order.
    pub fn add(&self, labels: &[&str], count: u64) {
        if let Ok(counter) = self.0.get_metric_with_label_values(labels) {
            counter.inc_by(count);
        }
    }

    /// Adds one.
    pub fn inc(&self, labels: &[&str]) {
        self.add(labels, 1);
    }
}

impl Gauge {
    /// Sets the value.
    pub fn set(&self, labels: &[&str], value: u64) {
        if let Ok(gauge) = self.0.get_metric_with_label_values(labels) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }

    /// Changes the value.
    pub fn change(&self, labels: &[&str], by: i64) {
        if let Ok(gauge) = self.0.get_metric_with_label_values(labels) {
            gauge.add(by);
        }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn observe(&self, labels: &[&str], value: f64) {
        if let Ok(histogram) = self.0.get_metric_with_label_values(labels) {
            histogram.observe(value);
        }
    }

    /// Counts a time, in seconds.
    pub fn took(&self, labels: &[&str], time: Duration) {
        self.observe(labels, time.as_secs_f64());
    }
}

/// The metrics of a process, as they are exposed.
#[derive(Debug, Default)]
pub struct Exposition(Registry);

impl Exposition {
    /// Returns the text that Prometheus reads.
    pub fn render(&self) -> String {
        // Names and labels are the table's, which were taken when it was registered.
        TextEncoder::new().encode_to_string(&self.0.gather()).unwrap_or_default()
    }

    fn register(&self, definition: &Definition, collector: impl Collector + 'static) {
        taken(definition, self.0.register(Box::new(collector)));
    }
}

/// A metric of one kind.
pub trait Metric: Sized {
    /// Makes the metric of a table's row, and exposes it. Each series begins at zero.
    fn of(definition: &Definition, exposition: &Exposition) -> Self;
}

impl Metric for Counter {
    fn of(definition: &Definition, exposition: &Exposition) -> Self {
        let family = taken(definition, IntCounterVec::new(options(definition), &label_names(definition)));
        for values in series(definition.labels) {
            family.with_label_values(&values);
        }
        exposition.register(definition, family.clone());
        Self(family)
    }
}

impl Metric for Gauge {
    fn of(definition: &Definition, exposition: &Exposition) -> Self {
        let family = taken(definition, IntGaugeVec::new(options(definition), &label_names(definition)));
        for values in series(definition.labels) {
            family.with_label_values(&values);
        }
        exposition.register(definition, family.clone());
        Self(family)
    }
}

impl Metric for Histogram {
    fn of(definition: &Definition, exposition: &Exposition) -> Self {
        let Kind::Histogram(bounds) = definition.kind else { return unfit(definition) };
        let options = HistogramOpts::from(options(definition)).buckets(bounds.to_vec());
        let family = taken(definition, HistogramVec::new(options, &label_names(definition)));
        for values in series(definition.labels) {
            family.with_label_values(&values);
        }
        exposition.register(definition, family.clone());
        Self(family)
    }
}

fn options(definition: &Definition) -> Opts {
    Opts::new(definition.name, definition.help)
}

fn label_names(definition: &Definition) -> Vec<&'static str> {
    definition.labels.iter().map(|label| label.name).collect()
}

/// Returns all combinations of the labels' values.
fn series(labels: &[Label]) -> Vec<Vec<&'static str>> {
    labels.iter().fold(vec![Vec::new()], |series, label| {
        let with = |values: &Vec<&'static str>| {
            let values = values.clone();
            label.values.iter().map(move |value| [values.as_slice(), &[*value]].concat())
        };
        series.iter().flat_map(with).collect()
    })
}

#[expect(clippy::panic, reason = "tables are constants, and a test of each service makes all its metrics")]
fn taken<T>(definition: &Definition, result: Result<T, prometheus::Error>) -> T {
    result.unwrap_or_else(|error| panic!("metric {}: {error}", definition.name))
}

#[expect(clippy::panic, reason = "as above")]
fn unfit<T>(definition: &Definition) -> T {
    panic!("metric {} is no histogram", definition.name)
}

/// Declares the metrics of a service: the table, a struct with a field for each row, and the functions `metrics`, which
/// returns those of this process, and `render`, which formats them.
#[macro_export]
macro_rules! metrics {
    ($(#[$text:meta])* $($field:ident: $kind:ident $(($bounds:expr))? = $name:literal, $unit:literal,
        { $($label:ident: $values:expr),* $(,)? }, $help:literal;)*) => {
        $(#[$text])*
        #[derive(Debug)]
        pub(crate) struct Metrics {
            exposition: $crate::metrics::Exposition,
            $(pub(crate) $field: $crate::metrics::$kind,)*
        }

        /// The table of this service's metrics.
        pub const TABLE: &[$crate::metrics::Definition] = &[$($crate::metrics::Definition {
            name: $name,
            kind: $crate::metrics::Kind::$kind $(($bounds))?,
            unit: $unit,
            labels: &[$($crate::metrics::Label { name: stringify!($label), values: $values }),*],
            help: $help,
        },)*];

        impl Metrics {
            fn new() -> Self {
                let exposition = $crate::metrics::Exposition::default();
                let mut rows = TABLE.iter();
                $(let $field = $crate::metrics::next_row(&mut rows, &exposition);)*
                Self { exposition, $($field,)* }
            }
        }

        /// The metrics of this process.
        pub(crate) fn metrics() -> &'static Metrics {
            static METRICS: ::std::sync::LazyLock<Metrics> = ::std::sync::LazyLock::new(Metrics::new);
            &METRICS
        }

        /// The metrics of this process in Prometheus' text form.
        pub fn render() -> String {
            metrics().exposition.render()
        }
    };
}

/// Makes the metric of a table's next row.
#[doc(hidden)]
pub fn next_row<M: Metric>(rows: &mut std::slice::Iter<'_, Definition>, exposition: &Exposition) -> M {
    rows.next().map_or_else(|| unfit(&MISSING), |definition| M::of(definition, exposition))
}

const MISSING: Definition = Definition { name: "?", kind: Kind::Counter, unit: "", labels: &[], help: "" };

/// Formats a table as Markdown.
pub fn markdown(table: &[Definition]) -> String {
    let mut text =
        String::from("| metric | kind | unit | labels | what it tells |\n| --- | --- | --- | --- | --- |\n");
    for Definition { name, kind, unit, labels, help } in table {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let labels: Vec<String> =
            labels.iter().map(|label| format!("`{}`: {}", label.name, label.values.join(", "))).collect();
        text.push_str(&format!("| `{name}` | {kind} | {unit} | {} | {help} |\n", labels.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    #[expect(unreachable_pub, reason = "the macro is for services, which export both")]
    mod table {
        crate::metrics! {
            /// Metrics of this test.
            runs: Counter = "test_runs_total", "runs", { event: &["start", "stop"], outcome: &["ok", "failed"] }, "Runs.";
            depth: Gauge = "test_depth", "jobs", {}, "Jobs that wait.";
            time: Histogram(crate::metrics::SECONDS) = "test_seconds", "seconds", {}, "Time.";
        }
    }

    #[test]
    fn each_series_is_there_from_the_start_and_counts() {
        let metrics = table::metrics();
        let text = table::render();
        assert!(text.contains("test_runs_total{event=\"stop\",outcome=\"failed\"} 0"), "{text}");
        metrics.runs.inc(&["start", "ok"]);
        metrics.depth.set(&[], 3);
        metrics.depth.change(&[], -1);
        metrics.time.took(&[], std::time::Duration::from_millis(3));
        let text = table::render();
        assert!(text.contains("test_runs_total{event=\"start\",outcome=\"ok\"} 1"), "{text}");
        assert!(text.contains("test_depth 2"), "{text}");
        assert!(text.contains("test_seconds_bucket{le=\"0.005\"} 1"), "{text}");
        assert!(text.contains("test_seconds_bucket{le=\"0.0025\"} 0"), "{text}");
        assert!(text.contains("# HELP test_depth Jobs that wait."), "{text}");
    }

    #[test]
    fn a_table_is_written_with_all_values_of_its_labels() {
        let text = super::markdown(table::TABLE);
        let row =
            "| `test_runs_total` | counter | runs | `event`: start, stop; `outcome`: ok, failed | Runs. |";
        assert!(text.contains(row), "{text}");
    }
}
