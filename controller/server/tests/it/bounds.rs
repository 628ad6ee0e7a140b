//! Bounds on streams and connections: a client that holds many of them locks out no commands.

use std::time::Duration;

use periapt_client::{Client, Identity, Options};
use periapt_host_api::{ErrorCode, api::WatchPosition, logs::LogQuery, view::View};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

use crate::{
    fixture::{Fixture, TIMEOUT, code_of, next},
    metrics::{scrape, value},
    raw,
    streams::{LARGE, commit, placed},
    watches::set_title,
};

/// The most streams of operators of one model, and the most without HTTP/2.
const OF_MODEL: usize = 128;
const WITHOUT_HTTP2: usize = 256;
/// A stall timeout that is short for a test, and longer than the time between two polls on a busy machine.
const SOON: Duration = Duration::from_secs(2);

fn following() -> LogQuery {
    LogQuery { follow: true, ..LogQuery::default() }
}

#[tokio::test]
async fn held_logs_keep_neither_commands_nor_agents_nor_other_models_out() {
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    let selector = deployed.model.selector();
    let mut held = Vec::new();
    for _ in 0..OF_MODEL {
        held.push(fixture.client.logs(&selector, &following()).await.unwrap());
    }
    assert_eq!(
        code_of(fixture.client.logs(&selector, &following()).await.map(drop)),
        ErrorCode::TooManyRequests
    );
    let status = fixture.client.watch_status(&selector).await.map(drop);
    assert_eq!(code_of(status), ErrorCode::TooManyRequests);

    deployed.model.command(set_title("still")).await.unwrap();
    next(&mut deployed.watch(None).await).await;
    let other = fixture.add_model("other").await;
    next(&mut fixture.client.watch_status(&other.selector()).await.unwrap()).await;

    held.clear();
    let again = async {
        while fixture.client.logs(&selector, &following()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, again).await.unwrap();
    fixture.stop().await;
}

#[tokio::test]
async fn streams_that_hold_a_connection_each_leave_room_for_new_callers() {
    let fixture = Fixture::start().await;
    let mut models = Vec::new();
    for number in 0..WITHOUT_HTTP2.div_ceil(OF_MODEL) {
        models.push(fixture.add_model(&format!("m{number}")).await.uuid);
    }
    let address = fixture.handle.address();
    let path = |model| format!("/v1/models/{model}/status/watch");
    let mut held = Vec::new();
    for number in 0..WITHOUT_HTTP2 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {} HTTP/1.1\r\nhost: {address}\r\n\r\n", path(models[number / OF_MODEL]));
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        held.push(stream);
    }
    let last = fixture.add_model("last").await;
    let refused = raw::request(address, &format!("GET {}", path(last.uuid)), &[], "").await;
    assert_eq!(refused.status, 429);
    assert!(refused.json()["detail"].as_str().unwrap().contains("callers without HTTP/2"));
    let answered = raw::request(address, &format!("GET /v1/models/{}", last.uuid), &[], "").await;
    assert_eq!(answered.status, 200);
    next(&mut fixture.client.watch_status(&last.selector()).await.unwrap()).await;
    drop(held);
    fixture.stop().await;
}

#[tokio::test]
async fn a_stream_that_nobody_reads_is_cut_alone_and_its_watcher_goes_on_where_it_was() {
    let fixture = Fixture::start_impatient(SOON).await;
    let deployed = placed(&fixture).await;
    let (mut other, mut read) = (deployed.watch(None).await, View::default());
    read.apply(next(&mut other).await).unwrap();
    let mut watch = deployed.watch(None).await;
    let first = next(&mut watch).await;
    let position = WatchPosition { store: first.store, revision: first.to };
    let mut mirror = View::default();
    mirror.apply(first).unwrap();
    // These are more bytes than the client takes in unread. The other stream of the same connection takes them.
    let revision = commit(&deployed, 10, LARGE).await;
    while read.revision < revision {
        read.apply(next(&mut other).await).unwrap();
    }
    // Reading would make room in the stream's window, so that the controller alone can tell when it cuts.
    while value(&scrape(&fixture).await, "periapt_controller_streams{kind=\"view\"}") > 1.0 {
        tokio::task::yield_now().await;
    }
    let ended = async {
        loop {
            match futures_util::StreamExt::next(&mut watch).await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return,
                None => panic!("a stream that is cut does not look complete"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, ended).await.unwrap();
    deployed.model.command(set_title("still")).await.unwrap();
    next(&mut other).await;

    mirror.apply(next(&mut deployed.watch(Some(position)).await).await).unwrap();
    assert_eq!(mirror, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn a_connection_on_which_nothing_is_asked_is_closed() {
    let fixture = Fixture::start_impatient(SOON).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let controller = fixture.handle.address();
    let (ended, closed) = oneshot::channel();
    let between = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut controller = TcpStream::connect(controller).await.unwrap();
        // Either direction may fail: the other end may be gone.
        let _ = copy_bidirectional(&mut client, &mut controller).await;
        let _ = ended.send(());
    });
    let client = Client::new(Options::new(url, Identity::Local)).unwrap();
    client.controller().await.unwrap();
    // The client sends keep-alives by itself, so it is never silent.
    tokio::time::timeout(TIMEOUT, closed).await.unwrap().unwrap();
    between.await.unwrap();
    fixture.stop().await;
}
