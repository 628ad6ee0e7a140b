//! Clients that know several addresses, and go on to the next when one fails.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use periapt_client::{
    AttemptError, Client, ClientError, HandshakeError, Identity, NdJson, Options, StartAt, Trust,
};
use periapt_host_api::{
    api::ModelSelector,
    command::{Answer, ControllerCommand},
    timing::{KEEP_ALIVE, PEER_SILENCE},
};
use tempfile::TempDir;
use tokio::{
    io::{copy, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

use crate::{
    fixture::{TIMEOUT, next},
    listeners::Listening,
};

/// The longest way to another controller in these tests: well above [`PEER_SILENCE`] for a busy machine, and well below
/// the time in which a client of one controller alone would notice anything.
const SOON: Duration = Duration::from_millis(5 * 1_500);
const _: () = assert!(SOON.as_millis() > 4 * PEER_SILENCE.as_millis());
const _: () = assert!(SOON.as_millis() < KEEP_ALIVE.as_millis());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    Open,
    /// Passes on what clients send, and withholds what the controller answers.
    Requests,
    /// Accepts connections and passes on nothing.
    Silent,
    /// Ends all connections and accepts none.
    Shut,
}

/// An address of its own for a controller, which fails as the test wants.
struct Door {
    url: String,
    passing: watch::Sender<Passing>,
    accepting: JoinHandle<()>,
}

impl Door {
    async fn to(controller: &Listening) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let (passing, behind) = (watch::Sender::new(Passing::Open), controller.handle.address());
        let (seen, mut until) = (passing.subscribe(), passing.subscribe());
        let accepting = tokio::spawn(async move {
            let connections = async {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(pass(stream, behind, seen.clone()));
                }
            };
            tokio::select! {
                () = connections => {}
                _ = until.wait_for(|passing| *passing == Passing::Shut) => {}
            }
        });
        Self { url, passing, accepting }
    }

    fn withhold(&self) {
        self.passing.send_replace(Passing::Requests);
    }

    fn silence(&self) {
        self.passing.send_replace(Passing::Silent);
    }

    /// Ends all connections. From then on the address refuses.
    async fn shut(&mut self) {
        self.passing.send_replace(Passing::Shut);
        (&mut self.accepting).await.unwrap();
    }
}

/// Passes bytes on while the door is open, and keeps the connection until the door is shut.
async fn pass(mut stream: TcpStream, behind: std::net::SocketAddr, mut passing: watch::Receiver<Passing>) {
    let mut until = passing.clone();
    let copied = async {
        if *passing.borrow_and_update() == Passing::Open {
            let mut server = TcpStream::connect(behind).await.unwrap();
            tokio::select! {
                _ = copy_bidirectional(&mut stream, &mut server) => return,
                _ = passing.wait_for(|passing| *passing != Passing::Open) => {}
            }
            if *passing.borrow_and_update() == Passing::Requests {
                let (mut asked, mut _answered) = stream.split();
                tokio::select! {
                    _ = copy(&mut asked, &mut server) => return,
                    _ = passing.wait_for(|passing| *passing != Passing::Requests) => {}
                }
            }
            // Neither end is closed.
            let _ = passing.wait_for(|passing| *passing == Passing::Shut).await;
        }
        std::future::pending().await
    };
    tokio::select! {
        () = copied => {}
        _ = until.wait_for(|passing| *passing == Passing::Shut) => {}
    }
}

/// A controller behind two doors, and a client that begins at the first.
struct TwoDoors {
    controller: Listening,
    first: Door,
    second: Door,
    client: Client,
    model: ModelSelector,
}

impl TwoDoors {
    async fn open() -> Self {
        let controller = Listening::open().await;
        let add = ControllerCommand::add_model("m".parse().unwrap());
        controller.on_socket().controller_command(add).await.unwrap();
        let (first, second) = (Door::to(&controller).await, Door::to(&controller).await);
        let client = client(&controller, &[&first.url, &second.url], controller.trust()).await;
        Self { controller, first, second, client, model: "m".parse().unwrap() }
    }

    /// Reads through whatever door answers, and checks that it is the second.
    async fn is_at_the_second(&self) {
        let began = Instant::now();
        self.client.models().await.unwrap();
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert_eq!(self.client.urls(), [self.second.url.as_str(), &self.first.url]);
    }
}

async fn client(controller: &Listening, urls: &[&str], trust: Trust) -> Client {
    Client::new(options(controller, urls, trust).await).unwrap()
}

async fn options(controller: &Listening, urls: &[&str], trust: Trust) -> Options {
    let session = controller.on_socket().open_session().await.unwrap();
    let options = Options::new(urls.join(","), Identity::Token(session.token)).with_trust(trust);
    options.with_start(StartAt::First)
}

/// Waits until a stream breaks, and returns its error.
async fn broken<T>(stream: &mut NdJson<T>) -> ClientError {
    let ends = async {
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("the stream ended in good order"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, ends).await.unwrap()
}

#[tokio::test]
async fn an_address_that_refuses_is_passed_over() {
    let mut doors = TwoDoors::open().await;
    doors.first.shut().await;
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn an_address_that_accepts_and_never_answers_is_passed_over() {
    let doors = TwoDoors::open().await;
    doors.first.silence();
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn a_watch_breaks_soon_after_its_controller_falls_silent_and_goes_on_at_the_next() {
    let doors = TwoDoors::open().await;
    let mut watch = doors.client.watch_status(&doors.model).await.unwrap();
    next(&mut watch).await;
    doors.first.silence();
    let began = Instant::now();
    let error = broken(&mut watch).await;
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert!(error.is_temporary() && error.to_string().contains(&doors.first.url), "{error}");
    next(&mut doors.client.watch_status(&doors.model).await.unwrap()).await;
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn a_watch_whose_controller_dies_goes_on_at_the_next() {
    let mut doors = TwoDoors::open().await;
    let mut watch = doors.client.watch_status(&doors.model).await.unwrap();
    next(&mut watch).await;
    doors.first.shut().await;
    broken(&mut watch).await;
    next(&mut doors.client.watch_status(&doors.model).await.unwrap()).await;
    doors.is_at_the_second().await;
    // Back again: the last one dies, and the first has come back under another address only.
    doors.second.shut().await;
    let again = Door::to(&doors.controller).await;
    doors.client.learn([&doors.second.url, &again.url]);
    doors.client.models().await.unwrap();
    assert_eq!(doors.client.urls()[0], again.url);
    doors.controller.close().await;
}

#[tokio::test]
async fn a_read_that_a_silent_controller_leaves_open_is_answered_by_the_next() {
    let doors = TwoDoors::open().await;
    doors.client.models().await.unwrap();
    assert_eq!(doors.client.urls()[0], doors.first.url);
    doors.first.silence();
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn a_write_that_a_silent_controller_leaves_open_is_not_sent_twice() {
    let doors = TwoDoors::open().await;
    doors.client.models().await.unwrap();
    doors.first.silence();
    let add = ControllerCommand::add_model("other".parse().unwrap());
    let error = doors.client.controller_command(add).await.unwrap_err();
    assert!(error.to_string().ends_with("whether the request was carried out is not known"), "{error}");
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn a_write_whose_answer_is_withheld_is_carried_out_once_and_answered_by_the_next() {
    let mut doors = TwoDoors::open().await;
    let urls = [doors.first.url.as_str(), &doors.second.url];
    let options = options(&doors.controller, &urls, doors.controller.trust()).await;
    doors.client = Client::new(options.with_unanswered_retry_timeout(TIMEOUT)).unwrap();
    doors.client.models().await.unwrap();
    doors.first.withhold();
    let asked = Instant::now();
    let adding = tokio::spawn({
        let client = doors.client.clone();
        async move { client.controller_command(ControllerCommand::add_model("other".parse().unwrap())).await }
    });
    let on_socket = doors.controller.on_socket();
    let of_first = async {
        loop {
            let models = on_socket.models().await.unwrap();
            if let Some(model) = models.into_iter().find(|model| model.name.as_str() == "other") {
                return model.uuid;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let uuid = tokio::time::timeout(TIMEOUT, of_first).await.unwrap();
    // The second door answers at once if the command takes as long as a client waits for the first one.
    assert!(
        !adding.is_finished() || asked.elapsed() >= PEER_SILENCE,
        "the controller has carried it out, and the client knows of nothing"
    );
    // With another id the second door's answer would be that there is such a model.
    assert_eq!(adding.await.unwrap().unwrap(), Answer::Model { uuid });
    doors.is_at_the_second().await;
    doors.controller.close().await;
}

#[tokio::test]
async fn where_none_can_be_reached_the_error_names_all_with_their_reasons() {
    let mut doors = TwoDoors::open().await;
    doors.first.shut().await;
    doors.second.shut().await;
    let error = doors.client.models().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("none of 2 controllers can be reached: "), "{text}");
    for door in [&doors.first, &doors.second] {
        assert!(text.contains(&format!("{}: Connection refused", door.url)), "{text}");
    }
    assert!(error.is_temporary());
    doors.controller.close().await;
}

#[tokio::test]
async fn a_trust_that_no_controller_meets_is_final_and_one_that_one_misses_is_not() {
    let (controller, elsewhere) = (Listening::open().await, TempDir::new().unwrap());
    let other = Trust::Authority(crate::listeners::authority_in(elsewhere.path()));
    let (first, mut second) = (Door::to(&controller).await, Door::to(&controller).await);
    let client = client(&controller, &[&first.url, &second.url], other).await;
    let error = client.models().await.unwrap_err();
    let ClientError::NoneReached(attempts) = &error else { panic!("{error}") };
    let untrusted =
        |reason: &AttemptError| matches!(reason, AttemptError::NotTrusted(HandshakeError::OtherAuthority));
    assert!(attempts.len() == 2 && attempts.iter().all(|attempt| untrusted(&attempt.reason)), "{error}");
    assert!(!error.is_temporary());
    second.shut().await;
    let error = client.models().await.unwrap_err();
    assert!(error.is_temporary(), "the second may come back, and be the right one: {error}");
    controller.close().await;
}

#[tokio::test]
async fn a_controller_names_the_url_by_which_its_clients_reach_it() {
    let controller = Listening::open().await;
    let info = controller.on_socket().controller().await.unwrap();
    assert_eq!(info.addresses, [controller.handle.url()]);
    controller.close().await;
}
