//! The program's log, on standard error, apart from its output; and the spans that it exports.

use std::{env, ffi::OsString};

use clap::ValueEnum;
use periapt_host_api::trace::TraceContext;
use periapt_telemetry::{
    context,
    export::{self, Destination, LastSpans},
    span, spans,
};
use tracing::{Span, field};
use tracing_subscriber::{
    EnvFilter, Layer, Registry, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::output;

/// The variable that sets log levels beyond those of the options, as in `periapt_agent=trace`.
const LOG_VARIABLE: &str = "PERIAPT_LOG";

/// The variable that sets the log's format, where no option does.
const FORMAT_VARIABLE: &str = "PERIAPT_LOG_FORMAT";

/// OpenTelemetry's variable for the collector that spans are sent to. Without it no span is recorded.
const COLLECTOR_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The variable by which an agent tells its runners that it exports their spans.
const KEEPER_VARIABLE: &str = "PERIAPT_SPANS_TO_KEEPER";

/// The variable with the trace context of the program that started this one, in the form of the header `traceparent`.
const CONTEXT_VARIABLE: &str = "TRACEPARENT";

/// The format of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object on each line.
    Json,
}

/// A service that this process runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    /// The name in traces.
    pub(crate) name: &'static str,
    /// The format of the log, if an option says one.
    pub(crate) log_format: Option<LogFormat>,
}

/// The kind of process that logs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Process {
    /// A verb, which runs until it is done.
    Verb,
    /// A service.
    Service(Service),
    /// A process that a service has started.
    OfService,
}

/// Starts the log, and the export of spans. Called once. The last spans are sent when the returned value is dropped.
/// `level` holds where the environment says nothing.
pub(crate) fn start(process: Process, level: &str) -> Option<LastSpans> {
    let filter = EnvFilter::try_from_env(LOG_VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt::layer().with_writer(|| output::Log).with_ansi(output::is_seen());
    let log: Box<dyn Layer<Registry> + Send + Sync> = match format(process) {
        LogFormat::Text => log.with_filter(filter).boxed(),
        LogFormat::Json => log.json().with_filter(filter).boxed(),
    };
    let registry = tracing_subscriber::registry().with(log);
    let collector = variable(COLLECTOR_VARIABLE);
    let to_collector =
        |service| collector.as_deref().map(|endpoint| Destination::Collector { endpoint, service });
    let destination = match process {
        Process::Verb => to_collector("periapt"),
        Process::Service(service) => to_collector(service.name),
        Process::OfService => variable(KEEPER_VARIABLE).map(|_| Destination::Keeper),
    };
    match destination.map(export::start).transpose() {
        Ok(Some((layer, last_spans))) => {
            registry.with(layer).init();
            Some(last_spans)
        }
        Ok(None) => {
            registry.init();
            None
        }
        Err(error) => {
            registry.init();
            tracing::warn!("no span is exported: {error}");
            None
        }
    }
}

/// Returns the span of a verb, which is a step of the caller's trace if the caller has one.
pub(crate) fn verb_span(verb: &str) -> Span {
    let span = span!(spans::VERB, verb, outcome = field::Empty);
    context::continue_from(&span, callers_context().as_ref());
    span
}

/// Returns the step of a trace that this process's requests belong to: the present span, or else the caller's step.
pub(crate) fn trace_context() -> Option<TraceContext> {
    context::of(&Span::current()).or_else(callers_context)
}

/// Returns the environment in which the processes of an agent log as the agent does, and pass their spans to it.
pub(crate) fn environment_of_processes(format: Option<LogFormat>) -> Vec<(OsString, OsString)> {
    let given = |name: &str| env::var_os(name).map(|value| (OsString::from(name), value));
    let format = match format {
        Some(LogFormat::Json) => Some((FORMAT_VARIABLE.into(), "json".into())),
        Some(LogFormat::Text) => None,
        None => given(FORMAT_VARIABLE),
    };
    let spans = export::is_on().then(|| (KEEPER_VARIABLE.into(), "1".into()));
    given(LOG_VARIABLE).into_iter().chain(format).chain(spans).collect()
}

/// Returns the environment of a process that logs nothing.
pub(crate) fn silent_environment() -> Vec<(OsString, OsString)> {
    vec![(LOG_VARIABLE.into(), "off".into())]
}

fn format(process: Process) -> LogFormat {
    let chosen = match process {
        Process::Service(service) => service.log_format,
        Process::Verb | Process::OfService => None,
    };
    let named = || variable(FORMAT_VARIABLE).and_then(|text| LogFormat::from_str(&text, false).ok());
    chosen.or_else(named).unwrap_or_default()
}

/// Returns the caller's step of a trace. A text that is none is ignored, as in the header of a request.
fn callers_context() -> Option<TraceContext> {
    variable(CONTEXT_VARIABLE)?.parse().ok()
}

/// Returns an environment variable. An empty one counts as not set.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}
