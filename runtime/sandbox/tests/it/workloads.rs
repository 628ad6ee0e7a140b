//! Workloads that serve HTTP: the guest `hostile-workload`, which behaves in some modes.

use std::{
    convert::Infallible,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use periapt_sandbox::{
    BoxFuture,
    workload::{
        CompiledWorkload, HttpWorkload, LogChunk, NoOutbound, Outbound, OutboundConnection, OutboundRefused,
        OutboundTarget, PreopenedDirectory, RequestBudgets, RequestFailure, ResponseBody, WorkloadEngine,
        WorkloadInputs, WorkloadLog, WorkloadPool,
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
};

use crate::world::component;

/// The pool of the tests' engine.
pub(crate) fn pool() -> WorkloadPool {
    WorkloadPool { instances: 4, memory: 256 << 20, instance_memory: 64 << 20, ..WorkloadPool::default() }
}

/// The engine and the guest, compiled once.
pub(crate) static GUEST: LazyLock<(WorkloadEngine, CompiledWorkload)> = LazyLock::new(|| workload(pool()));

/// Compiles the guest for an engine with these bounds.
pub(crate) fn workload(pool: WorkloadPool) -> (WorkloadEngine, CompiledWorkload) {
    let engine = WorkloadEngine::new(pool).unwrap();
    let compiled = engine.compile(&component("hostile_workload")).unwrap();
    (engine, compiled)
}

/// Returns surroundings with a directory, and the log.
pub(crate) fn inputs(directory: &std::path::Path) -> (WorkloadInputs, mpsc::Receiver<LogChunk>) {
    std::fs::write(directory.join("file"), "content").unwrap();
    let _ = std::os::unix::fs::symlink("/etc/passwd", directory.join("link"));
    let (log, receiver) = WorkloadLog::new();
    let inputs = WorkloadInputs {
        arguments: vec!["web".to_owned()],
        environment: vec![("NAME".to_owned(), "value".to_owned())],
        directories: vec![PreopenedDirectory {
            host: directory.to_owned(),
            guest: "/data".to_owned(),
            is_read_only: true,
        }],
        log,
        outbound: Arc::new(NoOutbound),
    };
    (inputs, receiver)
}

/// Returns all that is in a log.
pub(crate) fn text(log: &mut mpsc::Receiver<LogChunk>) -> String {
    let mut text = Vec::new();
    while let Ok(chunk) = log.try_recv() {
        text.extend_from_slice(&chunk.bytes);
    }
    String::from_utf8(text).unwrap()
}

struct Server {
    workload: HttpWorkload,
    log: mpsc::Receiver<LogChunk>,
    _directory: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        Self::with(&GUEST.0, &GUEST.1, RequestBudgets::default(), Arc::new(NoOutbound))
    }

    fn bounded(budgets: RequestBudgets) -> Self {
        Self::with(&GUEST.0, &GUEST.1, budgets, Arc::new(NoOutbound))
    }

    fn with(
        engine: &WorkloadEngine,
        guest: &CompiledWorkload,
        budgets: RequestBudgets,
        outbound: Arc<dyn Outbound>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (inputs, log) = inputs(directory.path());
        let inputs = WorkloadInputs { outbound, ..inputs };
        let workload = HttpWorkload::new(engine, guest, inputs, budgets).unwrap();
        Self { workload, log, _directory: directory }
    }

    async fn send(&self, path: &str, body: &[u8]) -> Result<Response<ResponseBody>, RequestFailure> {
        let uri = format!("http://web{path}");
        let request = Request::post(uri).body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        self.workload.handle(request).await
    }

    async fn get(&self, path: &str) -> Result<String, RequestFailure> {
        let body = self.send(path, b"").await?.into_body().collect().await.unwrap();
        Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }

    async fn fails(mut self, path: &str, reason: &str) {
        let failure = self.get(path).await.unwrap_err();
        assert!(failure.to_string().starts_with(reason), "{path}: {failure}");
        let log = text(&mut self.log);
        assert!(log.contains(&format!("POST {path}: {failure}")), "{path}: {log}");
        assert_eq!(self.get("/").await.unwrap(), "hello\n", "the next request has an instance of its own");
    }
}

#[tokio::test]
async fn a_request_is_answered_by_an_instance_with_its_surroundings_alone() {
    let mut server = Server::start();
    assert_eq!(server.get("/").await.unwrap(), "hello\n");
    assert_eq!(server.get("/surroundings").await.unwrap(), "web\nNAME=value\n");
    assert_eq!(server.get("/read?/data/file").await.unwrap(), "content");
    assert_eq!(server.get("/escapes").await.unwrap(), "");
    assert_eq!(server.send("/nowhere", b"").await.unwrap().status(), 404);
    assert_eq!(server.get("/log").await.unwrap(), "logged\n");
    let log = text(&mut server.log);
    assert!(log.contains("GET /log\n") && log.contains("an error\n"), "{log}");
}

#[tokio::test]
async fn bodies_go_in_and_out_within_bounds() {
    let server = Server::bounded(RequestBudgets { request_bytes: 1 << 20, ..RequestBudgets::default() });
    let body: Vec<u8> = (0..1_u32 << 20).map(|at| at as u8).collect();
    let echoed = server.send("/echo", &body).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(echoed.to_bytes(), body);
    let more = vec![0; (1 << 20) + 1];
    assert_eq!(server.send("/echo", &more).await.unwrap_err(), RequestFailure::TooLarge(1 << 20));
    // A body of no declared length ends for the guest at the bound.
    let piece = || Ok::<_, Infallible>(Frame::data(Bytes::from(vec![0; 64 << 10])));
    let body = StreamBody::new(futures_util::stream::repeat_with(piece));
    let request = Request::post("http://web/length").body(body).unwrap();
    let answer = server.workload.handle(request).await.unwrap().into_body().collect().await.unwrap();
    let length: usize = String::from_utf8(answer.to_bytes().to_vec()).unwrap().trim().parse().unwrap();
    assert!(length <= 1 << 20, "{length}");
}

#[tokio::test]
async fn a_guest_that_fails_is_one_error_and_one_line_of_the_log() {
    Server::start().fails("/silent", "it ended without an answer").await;
    Server::start().fails("/abort", "it aborted").await;
    Server::start().fails("/exit", "it exited with code 1").await;
    Server::start().fails("/refuse", "it answered with the error").await;
    Server::start().fails("/recurse", "stack overflow").await;
    Server::start().fails("/fields", "").await;
}

#[tokio::test]
async fn a_guest_that_never_ends_is_ended() {
    let cpu = Duration::from_millis(200);
    let server = Server::bounded(RequestBudgets { cpu, ..RequestBudgets::default() });
    server.fails("/compute", "cpu budget exceeded: a request may compute for 200 ms").await;
    for path in ["/compute", "/sleep"] {
        let time = Duration::from_millis(200);
        let began = Instant::now();
        let server = Server::bounded(RequestBudgets { time, ..RequestBudgets::default() });
        server.fails(path, "timed out: a request may take 200 ms").await;
        assert!(began.elapsed() < Duration::from_secs(50));
    }
}

#[tokio::test]
async fn a_guest_whose_log_nobody_reads_waits_for_its_end() {
    let time = Duration::from_millis(500);
    let mut server = Server::bounded(RequestBudgets { time, ..RequestBudgets::default() });
    assert_eq!(server.get("/flood").await.unwrap_err(), RequestFailure::TimedOut(time));
    assert!(text(&mut server.log).len() < 8 << 20);
}

#[tokio::test]
async fn memory_is_bounded_for_each_instance_and_for_all() {
    let server = Server::start();
    let taken: u64 = server.get("/memory").await.unwrap().trim().parse().unwrap();
    assert!((32..64).contains(&taken), "{taken} MiB");
    let small = WorkloadPool { memory: 80 << 20, ..pool() };
    let engine = WorkloadEngine::new(small).unwrap();
    let guest = engine.compile(&component("hostile_workload")).unwrap();
    let server = Server::with(&engine, &guest, RequestBudgets::default(), Arc::new(NoOutbound));
    let mut sums = Vec::<u64>::new();
    while sums.last().is_none_or(|sum| *sum >= 100) {
        // On a busy machine, one may have ended before the other begins.
        assert!(sums.len() < 20, "{sums:?} MiB");
        let (one, two) = tokio::join!(server.get("/memory"), server.get("/memory"));
        let taken = [one, two].map(|taken| taken.unwrap().trim().parse::<u64>().unwrap());
        sums.push(taken.into_iter().sum());
    }
    let taken: u64 = server.get("/memory").await.unwrap().trim().parse().unwrap();
    assert!((32..64).contains(&taken), "{taken} MiB: the others gave it back");
}

#[tokio::test]
async fn a_response_that_does_not_end_well_is_no_whole_response() {
    let response_bytes = 1 << 20;
    let server = Server::bounded(RequestBudgets { response_bytes, ..RequestBudgets::default() });
    let mut body = server.send("/for-ever", b"").await.unwrap().into_body();
    let mut length = 0;
    let failure = loop {
        match body.frame().await.unwrap() {
            Ok(frame) => length += frame.into_data().unwrap().len(),
            Err(failure) => break failure,
        }
    };
    assert_eq!((length, failure.to_string().as_str()), (1 << 20, "the response has more than 1048576 bytes"));
    let failure = server.send("/half", b"").await.unwrap().into_body().collect().await.unwrap_err();
    assert!(failure.to_string().contains("failed before the end"), "{failure}");
}

#[tokio::test]
async fn a_guest_whose_client_has_gone_ends() {
    let server =
        Server::bounded(RequestBudgets { queue: Duration::from_secs(5), ..RequestBudgets::default() });
    for _ in 0..20 {
        let body = server.send("/for-ever", b"").await.unwrap().into_body();
        drop(body);
        let left = tokio::time::timeout(Duration::from_millis(20), server.get("/sleep")).await;
        assert!(left.is_err());
    }
    assert_eq!(server.get("/").await.unwrap(), "hello\n");
}

#[tokio::test]
async fn many_requests_share_few_instances() {
    let server = Server::start();
    let began = Instant::now();
    let naps: Vec<_> = (0..20).map(|_| server.get("/nap")).collect();
    for answer in futures_util::future::join_all(naps).await {
        assert_eq!(answer.unwrap(), "awake\n");
    }
    assert!(began.elapsed() >= Duration::from_millis(500), "four at a time, 100 ms each");
    let server = Server::bounded(RequestBudgets { queue: Duration::ZERO, ..RequestBudgets::default() });
    let naps: Vec<_> = (0..20).map(|_| server.get("/nap")).collect();
    let answers = futures_util::future::join_all(naps).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Err(RequestFailure::Busy)).count(), 16);
}

#[tokio::test]
async fn a_request_without_a_host_is_the_clients_fault() {
    let server = Server::start();
    let request = Request::get("/").body(Full::new(Bytes::new())).unwrap();
    let failure = server.workload.handle(request).await.unwrap_err();
    assert!(matches!(failure, RequestFailure::Invalid(_)), "{failure}");
}

/// A policy that grants one host, which answers in the test.
struct OneHost;

impl Outbound for OneHost {
    fn connect(
        &self,
        target: OutboundTarget,
    ) -> BoxFuture<'static, Result<Box<dyn OutboundConnection>, OutboundRefused>> {
        Box::pin(async move {
            if (target.host.as_str(), target.port) != ("db", 5432) {
                return Err(OutboundRefused::Denied);
            }
            let (mut ours, theirs) = tokio::io::duplex(4_096);
            tokio::spawn(async move {
                let mut head = vec![0; 4_096];
                let length = ours.read(&mut head).await.unwrap();
                head.truncate(length);
                let head = String::from_utf8_lossy(&head).to_lowercase();
                assert!(head.starts_with("get /asked http/1.1") && head.contains("host: db:5432"), "{head}");
                ours.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nrows!\n").await.unwrap();
            });
            Ok(Box::new(theirs) as Box<dyn OutboundConnection>)
        })
    }
}

#[tokio::test]
async fn a_guest_asks_those_alone_whom_the_policy_grants() {
    let server = Server::start();
    let refused = server.get("/ask?127.0.0.1:80").await.unwrap();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
    let server = Server::with(&GUEST.0, &GUEST.1, RequestBudgets::default(), Arc::new(OneHost));
    assert_eq!(server.get("/ask?db:5432").await.unwrap(), "200 rows!\n");
    let refused = server.get("/ask?db:80").await.unwrap();
    assert!(refused.contains("HttpRequestDenied"), "{refused}");
}

#[test]
fn a_component_that_is_no_server_is_one_clear_error() {
    let (engine, _) = &*GUEST;
    let charm = engine.compile(&component("mysql")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (inputs, _log) = inputs(directory.path());
    let error = HttpWorkload::new(engine, &charm, inputs, RequestBudgets::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it does not export wasi:http/incoming-handler; its exports: periapt:charm/handler@0.1.0"
    );
    assert!(engine.compile(b"\0asm\x0d\0\x01\0\xff").is_err());
}
