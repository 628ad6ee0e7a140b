//! Spans as data between processes: a runner has no network, so its keeper exports them.

use std::time::{Duration, SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, Value,
    trace::{Link, SpanKind, Status},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use periapt_host_api::trace::TraceContext;
use serde::{Deserialize, Serialize};

use crate::{
    context::{from_otel, to_otel},
    spans::{ATTRIBUTES_OF_RUNNERS, OF_RUNNERS},
};

/// The most links of one span; a unit is woken by few commands at a time.
const MAX_LINKS: usize = 8;
/// The most bytes of an attribute's text: the longest name of a unit is far shorter.
const MAX_TEXT: usize = 256;

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpanRecord {
    /// The span's place in its trace.
    pub context: TraceContext,
    /// The id of its parent; 0: none.
    pub parent: u64,
    /// The name, one of the vocabulary.
    pub name: String,
    /// The begin, in nanoseconds since 1970.
    pub began_ns: u64,
    /// The duration, in nanoseconds.
    pub took_ns: u64,
    /// The attributes.
    pub attributes: Vec<(String, Attribute)>,
    /// Other spans that caused it.
    pub links: Vec<TraceContext>,
}

/// An attribute's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

impl SpanRecord {
    /// Converts a span of the library; none if it belongs to no trace.
    pub(crate) fn of(span: SpanData) -> Option<Self> {
        let began = span.start_time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
        let attribute = |KeyValue { key, value, .. }: KeyValue| {
            let value = match value {
                Value::I64(number) => Attribute::Number(number),
                other => Attribute::Text(other.as_str().into_owned()),
            };
            (key.to_string(), value)
        };
        Some(Self {
            context: from_otel(&span.span_context)?,
            parent: u64::from_be_bytes(span.parent_span_id.to_bytes()),
            name: span.name.into_owned(),
            began_ns: nanoseconds(began),
            took_ns: nanoseconds(took),
            attributes: span.attributes.into_iter().map(attribute).collect(),
            links: span.links.links.iter().filter_map(|link| from_otel(&link.span_context)).collect(),
        })
    }

    /// Converts the record to a span of the library, if a runner may send such a span: a runner comes near strangers'
    /// code, and must not make its agent export anything else. Unknown attributes are left out, and texts are bounded.
    pub(crate) fn checked(self, scope: &InstrumentationScope) -> Option<SpanData> {
        let name = OF_RUNNERS.into_iter().find(|known| *known == self.name)?;
        let start_time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(self.began_ns))?;
        let end_time = start_time.checked_add(Duration::from_nanos(self.took_ns))?;
        let attribute = |(key, value): (String, Attribute)| {
            let key = ATTRIBUTES_OF_RUNNERS.into_iter().find(|known| *known == key)?;
            Some(match value {
                Attribute::Number(number) => KeyValue::new(key, number),
                Attribute::Text(text) => KeyValue::new(key, text.chars().take(MAX_TEXT).collect::<String>()),
            })
        };
        let known = self.attributes.into_iter().take(ATTRIBUTES_OF_RUNNERS.len());
        let mut links = SpanLinks::default();
        links.links =
            self.links.iter().take(MAX_LINKS).map(|link| Link::new(to_otel(link), Vec::new(), 0)).collect();
        Some(SpanData {
            span_context: to_otel(&self.context),
            parent_span_id: SpanId::from_bytes(self.parent.to_be_bytes()),
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time,
            end_time,
            attributes: known.filter_map(attribute).collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links,
            status: Status::Unset,
            instrumentation_scope: scope.clone(),
        })
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SpanRecord {
        SpanRecord {
            context: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap(),
            parent: 7,
            name: "hook".to_owned(),
            began_ns: 1_700_000_000_000_000_000,
            took_ns: 1_500,
            attributes: vec![
                ("unit".to_owned(), Attribute::Text("app/0".to_owned())),
                ("fuel".to_owned(), Attribute::Number(9)),
            ],
            links: Vec::new(),
        }
    }

    #[test]
    fn a_span_is_the_same_after_its_way_to_the_keeper() {
        let scope = InstrumentationScope::builder("test").build();
        let json = serde_json::to_string(&record()).unwrap();
        let read: SpanRecord = serde_json::from_str(&json).unwrap();
        assert_eq!(SpanRecord::of(read.checked(&scope).unwrap()).unwrap(), record());
    }

    #[test]
    fn what_no_runner_says_is_left_out() {
        let scope = InstrumentationScope::builder("test").build();
        assert!(SpanRecord { name: "request".to_owned(), ..record() }.checked(&scope).is_none());
        assert!(SpanRecord { began_ns: u64::MAX, took_ns: u64::MAX, ..record() }.checked(&scope).is_some());
        let mut stuffed = record();
        stuffed.attributes = vec![
            ("service.name".to_owned(), Attribute::Text("bank".to_owned())),
            ("unit".to_owned(), Attribute::Text("x".repeat(100_000))),
        ];
        stuffed.links = vec![record().context; 1_000];
        let checked = SpanRecord::of(stuffed.checked(&scope).unwrap()).unwrap();
        assert_eq!(checked.attributes, [("unit".to_owned(), Attribute::Text("x".repeat(MAX_TEXT)))]);
        assert_eq!(checked.links.len(), MAX_LINKS);
    }
}
