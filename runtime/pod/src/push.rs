//! Pushes of lines to log targets, by HTTP with and without TLS.

use std::time::Duration;

use axum::http::{
    HeaderValue, Request,
    header::{CONNECTION, CONTENT_TYPE, HOST},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use periapt_pebble::{LogPush, LogPushResult, LogPushScheme};
use tokio::time::timeout;

use crate::{authorities::Authorities, outward::Outward};

/// The time for a push, from the connection to the answer's head.
const PUSH_TIME: Duration = Duration::from_secs(15);

/// The most bytes of an answer that are held at once, its head included.
const MAX_HEAD: usize = 16 << 10;

/// The bytes of an answer's body of which the reason for a refusal is made, and the time for them.
const MAX_SAID: usize = 1 << 10;
const SAID_TIME: Duration = Duration::from_secs(2);

/// Sends lines to their target.
pub(crate) async fn send(push: &LogPush, outward: &Outward, authorities: &Authorities) -> LogPushResult {
    let host = &push.location.authority;
    match timeout(PUSH_TIME, post(push, outward, authorities)).await {
        Ok(Ok(result)) => result,
        Ok(Err(reason)) => LogPushResult::Failed(format!("{host:?}: {reason}")),
        Err(_) => LogPushResult::Failed(format!("{host:?}: no answer in time")),
    }
}

async fn post(push: &LogPush, outward: &Outward, authorities: &Authorities) -> Result<LogPushResult, String> {
    let stream = outward.connect(&push.location.host, push.location.port).await?;
    let stream = match push.location.scheme {
        LogPushScheme::Http => stream,
        LogPushScheme::Https => authorities.secure(&push.location.host, stream).await?,
    };
    let mut settings = http1::Builder::new();
    settings.max_buf_size(MAX_HEAD);
    let (mut sender, connection) =
        settings.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let request = Request::post(push.path())
        .header(HOST, push.location.authority.as_str())
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Full::new(Bytes::from(push.body())));
    let request = match request {
        Ok(request) => request,
        Err(error) => return Ok(LogPushResult::Refused(format!("its location is no URL: {error}"))),
    };
    // It ends with this function.
    let mut connections = tokio::task::JoinSet::new();
    connections.spawn(connection);
    let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let said = match status.is_success() {
        true => Vec::new(),
        false => said(response.into_body()).await,
    };
    Ok(LogPushResult::of_answer(status.as_u16(), &String::from_utf8_lossy(&said)))
}

/// Reads the begin of a body, as far as it comes in time.
async fn said(mut body: Incoming) -> Vec<u8> {
    let mut said = Vec::new();
    let read = async {
        while said.len() < MAX_SAID
            && let Some(Ok(frame)) = body.frame().await
        {
            if let Some(data) = frame.data_ref() {
                said.extend_from_slice(data);
            }
        }
    };
    let _ = timeout(SAID_TIME, read).await;
    said.truncate(MAX_SAID);
    said
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read, Write},
        net::TcpListener,
        os::unix::net::UnixStream,
    };

    use periapt_host_api::pod::{DialOrder, OPENED, REFUSED};
    use periapt_pebble::{LogPushForm, LogPushLocation};
    use tokio::sync::mpsc;

    use super::*;
    use crate::{
        calls::{WorkloadCall, take_all},
        names::Names,
        network::Network,
        outward::WorkloadNetwork,
    };

    fn push_to(host: &str, port: u16) -> LogPush {
        let location = LogPushLocation {
            scheme: LogPushScheme::Http,
            host: host.to_owned(),
            port,
            authority: format!("{host}:{port}"),
            path: "/push?x=1".to_owned(),
        };
        LogPush { target: "t".to_owned(), form: LogPushForm::Loki, location, streams: Vec::new() }
    }

    /// Reads a push without lines, answers, and returns the request.
    fn answer(mut stream: impl Read + Write, answer: &str) -> String {
        let mut request = Vec::new();
        while !request.ends_with(b"{\"streams\":[]}") {
            let mut buffer = [0; 4_096];
            let length = stream.read(&mut buffer).unwrap();
            assert!(length > 0, "{}", String::from_utf8_lossy(&request));
            request.extend_from_slice(&buffer[..length]);
        }
        // A client that has heard enough closes its side.
        let _ = stream.write_all(answer.as_bytes());
        String::from_utf8(request).unwrap().to_lowercase()
    }

    #[tokio::test]
    async fn a_push_goes_by_the_keeper_alone_and_its_answer_is_bounded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sockets, taken) = mpsc::unbounded_channel();
        let (calls, mut called) = mpsc::channel(4);
        tokio::spawn(take_all(taken, calls));
        let network = Network::System(Names::OfSystem);
        let outward = Outward::new(WorkloadNetwork::Absent, network, Some(&sockets)).unwrap();
        let authorities = Authorities::new("/".into(), None);
        let large = format!("HTTP/1.1 204 No Content\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
        let endless = format!("HTTP/1.1 400 Bad\r\n\r\n{}", "y".repeat(1 << 20));
        for (host, word, said, expected) in [
            ("127.0.0.1", REFUSED, "", "may not reach it, or nobody answers"),
            ("db-0", OPENED, "HTTP/1.1 204 No Content\r\n\r\n", "Taken"),
            (
                "db-0",
                OPENED,
                "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nbusy",
                "Failed(\"it answers with status 503",
            ),
            (
                "db-0",
                OPENED,
                "HTTP/1.1 400 Bad\r\nContent-Length: 3\r\n\r\nold",
                "Refused(\"it answers with status 400",
            ),
            ("db-0", OPENED, &endless, "Refused(\"it answers with status 400"),
            ("db-0", OPENED, &large, "Failed("),
            ("db-0", OPENED, "nonsense\r\n\r\n", "Failed("),
            ("db-0", OPENED, "", "Failed("),
        ] {
            let (outward, authorities, said) = (outward.clone(), authorities.clone(), said.to_owned());
            let sending =
                tokio::spawn(async move { send(&push_to(host, port), &outward, &authorities).await });
            let WorkloadCall { order, stream } = called.recv().await.unwrap();
            assert_eq!(order, DialOrder { host: host.to_owned(), port });
            let request = tokio::task::spawn_blocking(move || {
                let mut stream = UnixStream::from(stream);
                stream.set_nonblocking(false).unwrap();
                stream.write_all(&[word]).unwrap();
                (word == OPENED).then(|| answer(stream, &said))
            });
            let request = request.await.unwrap();
            let result = format!("{:?}", sending.await.unwrap());
            assert!(result.contains(expected) && result.len() < 1_000, "{expected}: {result}");
            if let Some(request) = request {
                assert!(request.starts_with("post /push?x=1 http/1.1\r\n"), "{request}");
                let host = format!("\r\nhost: db-0:{port}\r\n");
                assert!(request.contains(&host) && request.contains("application/json"), "{request}");
            }
        }
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[tokio::test]
    async fn the_loopback_is_the_containers_own_and_without_a_keeper_nothing_else_is_reached() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let network = || Network::System(Names::OfSystem);
        let container = Outward::new(WorkloadNetwork::OfContainer, network(), None).unwrap();
        container.connect("localhost", port).await.map(drop).unwrap();
        listener.accept().unwrap();
        let absent = Outward::new(WorkloadNetwork::Absent, network(), None).unwrap();
        listener.set_nonblocking(true).unwrap();
        for (outward, host) in [(&container, "10.0.0.1"), (&container, "db-0"), (&absent, "127.0.0.1")] {
            let error = outward.connect(host, port).await.map(drop).unwrap_err();
            assert!(error.contains("no way to others"), "{host}: {error}");
        }
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
