//! The spans of the units and hooks that a traced command causes.

use periapt_host_api::trace::TraceContext;
use periapt_telemetry::{
    export::{self, Destination},
    record::{Attribute, SpanRecord},
};
use tracing_subscriber::{layer::SubscriberExt as _, util::SubscriberInitExt as _};

use super::stage::{Stage, is_idle};

const UNIT: &str = "app/0";

fn command() -> TraceContext {
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap()
}

/// The span of this name in the command's trace.
fn of_command<'a>(spans: &'a [SpanRecord], name: &str) -> Option<&'a SpanRecord> {
    spans.iter().find(|span| span.context.trace == command().trace && span.name == name)
}

fn attribute<'a>(span: &'a SpanRecord, name: &str) -> &'a Attribute {
    &span.attributes.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("no {name}: {span:?}")).1
}

#[tokio::test(start_paused = true)]
async fn a_hook_and_its_commit_are_steps_of_the_trace_of_the_command_that_made_the_hook_due() {
    let (layer, _last_spans) = export::start(Destination::Keeper).unwrap();
    tracing_subscriber::registry().with(layer).init();
    let mut stage = Stage::new(&[UNIT]).await;
    stage.until(|did| is_idle(did, UNIT)).await;
    stage.until_spans(|spans| spans.iter().any(|span| span.name == "unit")).await;
    assert!(of_command(&stage.spans, "hook").is_none(), "no command is traced yet");
    let commits = stage.traced.len();

    stage.trace = Some(command());
    stage.configure("app").await;
    stage.until_spans(|spans| of_command(spans, "unit").is_some()).await;
    let [runner, unit, operation, hook] =
        ["runner", "unit", "operation", "hook"].map(|name| of_command(&stage.spans, name).unwrap().clone());
    assert_eq!(runner.parent, command().span.get());
    assert_eq!(unit.parent, runner.context.span.get());
    assert_eq!(operation.parent, unit.context.span.get());
    assert_eq!(hook.parent, operation.context.span.get());
    assert_eq!(attribute(&hook, "event"), &Attribute::Text("config-changed".to_owned()));
    assert_eq!(attribute(&hook, "unit"), &Attribute::Text(UNIT.to_owned()));
    assert_eq!(attribute(&hook, "outcome"), &Attribute::Text("handled".to_owned()));
    assert!(matches!(attribute(&hook, "fuel"), Attribute::Number(1..)), "{hook:?}");
    assert_eq!(stage.traced.get(commits..), Some(&[Some(operation.context)][..]));

    // What no traced command caused belongs to another trace.
    let hooks = stage.spans.iter().filter(|span| span.name == "hook").count();
    stage.configure("app").await;
    stage.until_spans(|spans| spans.iter().filter(|span| span.name == "hook").count() > hooks).await;
    assert_ne!(stage.spans.iter().rfind(|span| span.name == "hook").unwrap().context.trace, command().trace);
}
