//! The export of spans from a process.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use opentelemetry::{Context, InstrumentationScope, trace::TracerProvider as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanExporter as _, SpanProcessor},
};
use tokio::sync::{Mutex, mpsc};
use tracing::{Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::FilterFn, registry::LookupSpan};

pub use crate::otlp::EndpointError;
use crate::{otlp, record::SpanRecord, spans::TARGET};

/// The most spans of a runner that wait for its keeper. More are dropped: they must not delay a hook.
const QUEUE: usize = 1_024;

/// The time that a process that ends takes to send its last spans.
const LAST_SPANS_WITHIN: Duration = Duration::from_secs(1);

/// The export of this process's spans, once it has begun.
static EXPORT: OnceLock<Export> = OnceLock::new();

enum Export {
    Collector(Arc<BatchSpanProcessor>),
    Keeper(Arc<Mutex<mpsc::Receiver<SpanRecord>>>),
}

/// The destination of a process's spans.
#[derive(Debug, Clone, Copy)]
pub enum Destination<'a> {
    /// To an OTLP collector: its endpoint, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    Collector {
        /// The URL, such as `http://127.0.0.1:4318`.
        endpoint: &'a str,
        /// The name of the service, for the collector.
        service: &'static str,
    },
    /// To the process that has started this one: [`next_records`] gives them out.
    Keeper,
}

/// Sends the last spans when it is dropped.
#[derive(Debug)]
pub struct LastSpans(SdkTracerProvider);

impl Drop for LastSpans {
    fn drop(&mut self) {
        // Without a collector they are lost, and nobody waits longer.
        let _ = self.0.shutdown_with_timeout(LAST_SPANS_WITHIN);
    }
}

/// Begins to export spans, once in a process, and returns the layer that does so.
///
/// # Errors
/// [`EndpointError`]
pub fn start<S>(
    destination: Destination<'_>,
) -> Result<(impl Layer<S> + Send + Sync, LastSpans), EndpointError>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let builder = SdkTracerProvider::builder();
    let provider = match destination {
        Destination::Collector { endpoint, service } => {
            let resource = Resource::builder().with_service_name(service).build();
            let mut exporter = otlp::exporter(endpoint)?;
            exporter.set_resource(&resource);
            let processor = Arc::new(BatchSpanProcessor::builder(exporter).build());
            let _ = EXPORT.set(Export::Collector(Arc::clone(&processor)));
            builder.with_resource(resource).with_span_processor(Shared(processor)).build()
        }
        Destination::Keeper => {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let _ = EXPORT.set(Export::Keeper(Arc::new(Mutex::new(receiver))));
            builder.with_span_processor(ToKeeper(sender)).build()
        }
    };
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("periapt"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        // Without the hint, every disabled event of every crate would ask the filter.
        .with_filter(
            FilterFn::new(is_exported as fn(&Metadata<'_>) -> bool).with_max_level_hint(LevelFilter::DEBUG),
        );
    Ok((layer, LastSpans(provider)))
}

/// Returns true for spans of the vocabulary, and for warnings and errors, which become events of their span.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET || (metadata.is_event() && *metadata.level() <= Level::WARN)
}

/// Returns true if this process exports spans.
pub fn is_on() -> bool {
    EXPORT.get().is_some()
}

/// Waits for spans of a runner, and returns them for its keeper. Never returns in a process without a keeper.
pub async fn next_records() -> Vec<SpanRecord> {
    let Some(Export::Keeper(receiver)) = EXPORT.get() else { return std::future::pending().await };
    let mut records = Vec::new();
    if receiver.lock().await.recv_many(&mut records, QUEUE).await == 0 {
        std::future::pending::<()>().await;
    }
    records
}

/// Exports spans that a runner has sent.
pub fn export_records(records: Vec<SpanRecord>) {
    if let Some(Export::Collector(processor)) = EXPORT.get() {
        let scope = InstrumentationScope::builder("periapt").build();
        for span in records.into_iter().filter_map(|record| record.checked(&scope)) {
            processor.on_end(span);
        }
    }
}

/// The processor that the provider and [`export_records`] share.
#[derive(Debug)]
struct Shared(Arc<BatchSpanProcessor>);

impl SpanProcessor for Shared {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.0.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        self.0.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }
}

/// A processor that queues spans for [`next_records`].
struct ToKeeper(mpsc::Sender<SpanRecord>);

impl fmt::Debug for ToKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToKeeper")
    }
}

impl SpanProcessor for ToKeeper {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled()
            && let Some(record) = SpanRecord::of(span)
        {
            // A full queue drops it.
            let _ = self.0.try_send(record);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}
