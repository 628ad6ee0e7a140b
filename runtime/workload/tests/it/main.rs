//! The connections of a server, with a real guest behind them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed, as it should")]

use std::{path::PathBuf, sync::Arc, time::Duration};

use periapt_sandbox::workload::{
    HttpWorkload, NoOutbound, RequestBudgets, WorkloadEngine, WorkloadInputs, WorkloadLog, WorkloadPool,
};
use periapt_workload::{Listener, serve, serve_stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Returns the component of the guest that `tools/guest` built.
fn component() -> Vec<u8> {
    let guests = std::env::var_os("PERIAPT_GUESTS").map(PathBuf::from);
    let guests =
        guests.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests")));
    let path = guests.join("hostile_workload.wasm");
    let module = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; `make guests` builds it", path.display()));
    periapt_archive::adapt_workload(&module).unwrap()
}

/// Returns the guest with two instances at a time.
fn workload() -> HttpWorkload {
    let engine = WorkloadEngine::new(WorkloadPool { instances: 2, ..WorkloadPool::default() }).unwrap();
    let compiled = engine.compile(&component()).unwrap();
    let inputs = WorkloadInputs {
        arguments: vec!["web".to_owned()],
        environment: Vec::new(),
        directories: Vec::new(),
        log: WorkloadLog::new().0,
        outbound: Arc::new(NoOutbound),
    };
    let budgets = RequestBudgets {
        queue: Duration::from_millis(100),
        request_bytes: 1_000,
        response_bytes: 1 << 20,
        time: Duration::from_secs(5),
        ..RequestBudgets::default()
    };
    HttpWorkload::new(&engine, &compiled, inputs, budgets).unwrap()
}

fn connect(workload: &HttpWorkload) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    tokio::spawn(serve_stream(theirs, workload.clone(), CancellationToken::new()));
    ours
}

/// Sends bytes, and returns the first answer's head and what came with it.
async fn send(stream: &mut DuplexStream, bytes: &str) -> String {
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut piece = vec![0; 4_096];
        let length = timeout(Duration::from_secs(20), stream.read(&mut piece)).await.unwrap().unwrap();
        assert!(length > 0, "it ended: {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(piece.get(..length).unwrap());
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn each_failure_has_a_status_and_tells_the_client_nothing_more() {
    let workload = workload();
    for (request, status, text) in [
        ("GET / HTTP/1.1\r\nHost: w\r\n\r\n", 200, ""),
        ("GET /nowhere HTTP/1.1\r\nHost: w\r\n\r\n", 404, ""),
        ("GET / HTTP/1.1\r\n\r\n", 400, "the request names no host\n"),
        ("PUT /echo HTTP/1.1\r\nHost: w\r\nContent-Length: 1001\r\n\r\n", 413, "the body is too large\n"),
        ("GET /abort HTTP/1.1\r\nHost: w\r\n\r\n", 500, "the workload failed\n"),
        ("GET /sleep HTTP/1.1\r\nHost: w\r\n\r\n", 504, "the workload took too long\n"),
        ("NO REQUEST\r\n\r\n", 400, ""),
    ] {
        let answer = send(&mut connect(&workload), request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.ends_with(text), "{request}: {answer}");
    }
}

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let mut stream = connect(&workload());
    for _ in 0..3 {
        let answer = send(&mut stream, "GET /nowhere HTTP/1.1\r\nHost: w\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        let mut rest = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
        while !rest.ends_with("0\r\n\r\n") {
            let mut piece = vec![0; 100];
            let length = stream.read(&mut piece).await.unwrap();
            rest.push_str(std::str::from_utf8(piece.get(..length).unwrap()).unwrap());
        }
    }
}

#[tokio::test]
async fn a_response_that_is_too_long_breaks_its_connection() {
    let mut stream = connect(&workload());
    stream.write_all(b"GET /for-ever HTTP/1.1\r\nHost: w\r\n\r\n").await.unwrap();
    let mut all = Vec::new();
    timeout(Duration::from_secs(20), stream.read_to_end(&mut all)).await.unwrap().unwrap();
    assert!(all.len() > 1 << 19 && !all.ends_with(b"0\r\n\r\n"), "{} bytes", all.len());
}

#[tokio::test]
async fn clients_that_do_nothing_keep_no_instance_from_others() {
    let workload = workload();
    let mut idle: Vec<_> = (0..8).map(|_| connect(&workload)).collect();
    for stream in &mut idle {
        stream.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
    }
    let answer = send(&mut connect(&workload), "GET / HTTP/1.1\r\nHost: w\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // Two guests that are busy with their clients are all that there are.
    let mut busy: Vec<_> = (0..2).map(|_| connect(&workload)).collect();
    for stream in &mut busy {
        send(stream, "GET /for-ever HTTP/1.1\r\nHost: w\r\n\r\n").await;
    }
    let answer = send(&mut connect(&workload), "GET / HTTP/1.1\r\nHost: w\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1"), "{answer}");
    drop(busy);
    // The others' requests end soon after their clients.
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let answer = send(&mut connect(&workload), "GET / HTTP/1.1\r\nHost: w\r\n\r\n").await;
        if answer.starts_with("HTTP/1.1 200 ") {
            break;
        }
        assert!(tokio::time::Instant::now() < until, "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_is_told_to_end_completes_its_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let server = tokio::spawn(serve(Listener::Tcp(listener), workload(), cancel.clone()));
    let idle = TcpStream::connect(address).await.unwrap();
    let mut asked = TcpStream::connect(address).await.unwrap();
    asked.write_all(b"GET /long-nap HTTP/1.1\r\nHost: w\r\n\r\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel.cancel();
    let mut answer = String::new();
    asked.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("awake") && answer.ends_with("0\r\n\r\n"), "{answer}");
    timeout(Duration::from_secs(60), server).await.unwrap().unwrap();
    drop(idle);
    TcpStream::connect(address).await.unwrap_err();
}
