//! Spans and the contexts that travel as data.

use std::fmt::{self, Write as _};

use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt as _, TraceState},
};
use periapt_host_api::trace::TraceContext;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Returns the context of a span; none if it is not recorded or not exported.
pub fn of(span: &Span) -> Option<TraceContext> {
    if span.is_disabled() {
        return None;
    }
    from_otel(span.context().span().span_context())
}

/// Makes a span that was not entered yet the child of a span in another process.
pub fn continue_from(span: &Span, context: Option<&TraceContext>) {
    if let Some(context) = context
        && !span.is_disabled()
    {
        let parent = Context::new().with_remote_span_context(to_otel(context));
        // Without a layer that exports there is nothing to continue.
        let _ = span.set_parent(parent);
    }
}

/// Links a span to another one that caused it, too.
pub fn link(span: &Span, context: &TraceContext) {
    if !span.is_disabled() {
        span.add_link(to_otel(context));
    }
}

pub(crate) fn from_otel(context: &SpanContext) -> Option<TraceContext> {
    let trace = u128::from_be_bytes(context.trace_id().to_bytes());
    let span = u64::from_be_bytes(context.span_id().to_bytes());
    Some(TraceContext {
        trace: trace.try_into().ok()?,
        span: span.try_into().ok()?,
        is_sampled: context.is_sampled(),
    })
}

pub(crate) fn to_otel(context: &TraceContext) -> SpanContext {
    let flags = if context.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    let trace = TraceId::from_bytes(context.trace.get().to_be_bytes());
    let span = SpanId::from_bytes(context.span.get().to_be_bytes());
    SpanContext::new(trace, span, flags, true, TraceState::default())
}

/// The name of a value's variant without its fields: the content of a command does not belong in a trace.
#[derive(Clone, Copy)]
pub struct Variant<'a>(pub &'a dyn fmt::Debug);

impl fmt::Display for Variant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut word = Word(f);
        // It ends with an error as soon as the word does.
        let _ = write!(word, "{:?}", self.0);
        Ok(())
    }
}

struct Word<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Word<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|character: char| !character.is_ascii_alphanumeric());
        self.0.write_str(text.get(..end.unwrap_or(text.len())).unwrap_or_default())?;
        end.map_or(Ok(()), |_| Err(fmt::Error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_the_same_after_its_way_through_opentelemetry() {
        for text in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
        ] {
            let context: TraceContext = text.parse().unwrap();
            assert_eq!(from_otel(&to_otel(&context)), Some(context));
        }
        assert_eq!(from_otel(&SpanContext::NONE), None);
    }

    #[test]
    fn of_a_value_its_variant_alone_is_told() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "printed by their names alone")]
        enum Command {
            Plain,
            SetConfig { password: &'static str },
            Boxed(Box<Command>),
        }
        assert_eq!(Variant(&Command::Plain).to_string(), "Plain");
        assert_eq!(Variant(&Command::SetConfig { password: "x" }).to_string(), "SetConfig");
        assert_eq!(Variant(&Command::Boxed(Box::new(Command::Plain))).to_string(), "Boxed");
    }
}
