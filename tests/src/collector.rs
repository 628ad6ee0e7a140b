//! An OTLP collector: it keeps the spans that processes send to it, for tests and demonstrations to look at.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value::Value},
    trace::v1::{ResourceSpans, Span},
};
use periapt_host_api::trace::TraceContext;
use prost::Message as _;

/// The timeout of each wait for spans.
const UNTIL: Duration = Duration::from_secs(90);
/// The most bytes of one request; an exporter sends 512 spans at a time.
const MAX_REQUEST: u64 = 16 << 20;

/// A collector on a port of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    spans: Vec<Collected>,
    /// Why a request could not be read: a defect of the exporter.
    error: Option<String>,
    ended: bool,
}

/// A span that a process has exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// The name of the process's service.
    pub service: String,
    /// The trace's id.
    pub trace: u128,
    /// The span's own id.
    pub id: u64,
    /// The id of its parent; none for the first span of a trace.
    pub parent: Option<u64>,
    /// The name.
    pub name: String,
    /// The begin, in nanoseconds since 1970.
    pub began_ns: u64,
    /// The duration, in nanoseconds.
    pub took_ns: u64,
    /// The attributes as texts.
    pub attributes: BTreeMap<String, String>,
    /// The traces and ids of the spans that it is linked to.
    pub links: Vec<(u128, u64)>,
}

impl Collected {
    /// Returns an attribute; an empty text if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// Returns true if the span is that of a context.
    pub fn is(&self, context: &TraceContext) -> bool {
        (self.trace, self.id) == (context.trace.get(), context.span.get())
    }
}

impl Collector {
    /// Starts a collector.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, shared) = (listener.local_addr()?, Arc::<Shared>::default());
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&listener, &serving));
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Returns the URL, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the environment of processes that export their spans to this collector, within a tenth of a second.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [("OTEL_EXPORTER_OTLP_ENDPOINT", self.endpoint()), ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned())]
    }

    /// Returns all spans as soon as they satisfy `holds`.
    pub fn wait_for(&self, holds: impl Fn(&[Collected]) -> bool) -> anyhow::Result<Vec<Collected>> {
        let not_yet = |state: &mut State| state.error.is_none() && !holds(&state.spans);
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), UNTIL, not_yet);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &state.error {
            bail!("a request with spans cannot be read: {error}");
        }
        ensure!(!timeout.timed_out(), "the spans that came are not those awaited: {:#?}", state.spans);
        Ok(state.spans.clone())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        // The listener looks at the flag after each connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(listener: &TcpListener, shared: &Shared) {
    for stream in listener.incoming() {
        if shared.lock().ended {
            return;
        }
        let Ok(stream) = stream else { continue };
        let received = receive(stream);
        let mut state = shared.lock();
        match received {
            Ok(spans) => state.spans.extend(spans),
            Err(error) => state.error = Some(format!("{error:#}")),
        }
        shared.changed.notify_all();
    }
}

/// Reads one request, and answers it.
fn receive(stream: TcpStream) -> anyhow::Result<Vec<Collected>> {
    stream.set_read_timeout(Some(UNTIL))?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    ensure!(line.starts_with("POST /v1/traces "), "the request is {line:?}");
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the head of the request has no end");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    ensure!(header("content-type") == "application/x-protobuf", "{headers:?}");
    let length: u64 = header("content-length").parse().with_context(|| format!("{headers:?}"))?;
    ensure!(length <= MAX_REQUEST, "a request of {length} bytes");
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    let request = ExportTraceServiceRequest::decode(body.as_slice())?;
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    reader.into_inner().write_all(answer.as_bytes())?;
    request
        .resource_spans
        .into_iter()
        .map(spans_of)
        .collect::<anyhow::Result<Vec<_>>>()
        .map(|all| all.concat())
}

fn spans_of(group: ResourceSpans) -> anyhow::Result<Vec<Collected>> {
    let resource = group.resource.context("spans without a resource")?;
    let service = attributes(resource.attributes).remove("service.name").context("no service.name")?;
    let spans = group.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans.map(|span| collected(&service, span)).collect()
}

fn collected(service: &str, span: Span) -> anyhow::Result<Collected> {
    let trace =
        |id: &[u8]| Ok::<_, anyhow::Error>(u128::from_be_bytes(id.try_into().context("a trace's id")?));
    let id = |id: &[u8]| Ok::<_, anyhow::Error>(u64::from_be_bytes(id.try_into().context("a span's id")?));
    let parent = if span.parent_span_id.is_empty() { 0 } else { id(&span.parent_span_id)? };
    Ok(Collected {
        service: service.to_owned(),
        trace: trace(&span.trace_id)?,
        id: id(&span.span_id)?,
        parent: (parent != 0).then_some(parent),
        name: span.name,
        began_ns: span.start_time_unix_nano,
        took_ns: span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano),
        attributes: attributes(span.attributes),
        links: span
            .links
            .iter()
            .map(|link| Ok((trace(&link.trace_id)?, id(&link.span_id)?)))
            .collect::<anyhow::Result<_>>()?,
    })
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.into_iter().map(|KeyValue { key, value, .. }| (key, text(value))).collect()
}
