//! An agent that knows two addresses of its controller, and goes on at the other one.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::Value;

/// The longest way of an agent to another address: far above 1.5 s for a busy machine, and below the 20 s after which an
/// agent of one address alone would leave its silent controller.
const SOON: Duration = Duration::from_secs(15);

/// An address of its own for a controller, which can be silenced: then it swallows what it reads.
struct Door {
    url: String,
    silent: Arc<AtomicBool>,
}

impl Door {
    fn to(controller: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://{}", listener.local_addr()?);
        let silent = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&silent);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(controller) else { continue };
                for (from, to) in [(&caller, &server), (&server, &caller)] {
                    if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                        let silent = Arc::clone(&seen);
                        thread::spawn(move || pass(from, to, &silent));
                    }
                }
            }
        });
        Ok(Self { url, silent })
    }

    fn silence(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        self.silent.store(false, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, silent: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if !silent.load(Ordering::SeqCst) && to.write_all(bytes.get(..length).unwrap_or_default()).is_err() {
            return;
        }
    }
    // The other direction ends as well; it may have ended before.
    let _ = to.shutdown(Shutdown::Both);
}

#[test]
fn an_agent_whose_controller_falls_silent_goes_on_at_its_other_address() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let listing = periapt.json(["controllers"])?;
    let server = listing.pointer("/controllers/local/recent-server").and_then(Value::as_str);
    let server = server.context("no server")?.parse()?;
    let (first, second) = (Door::to(server)?, Door::to(server)?);
    periapt.ok(["agent-token", "one", "--output", "one.token"])?;
    let urls = format!("{},{}", first.url, second.url);
    let words = ["agent", "run", "--controller", &urls, "--name", "one", "--data", "one"];
    let words = words.into_iter().chain(["--token-file", "one.token"]);
    second.silence();
    let mut agent = periapt.spawn(words)?;
    assert_eq!(agent.first_line()?, "ready one");
    second.open();
    first.silence();
    // Only at the second address can it hear that it was removed.
    let began = Instant::now();
    periapt.ok(["remove-agent", "one", "--no-prompt"])?;
    assert_eq!(agent.ended()?, Some(3));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    Ok(())
}

#[test]
fn a_list_of_controllers_that_cannot_be_used_is_refused_by_the_url_at_fault() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for (urls, fault) in [
        ("https://127.0.0.1:1,https://127.0.0.1:1", "\"https://127.0.0.1:1\": it stands twice in the list"),
        (
            "https://127.0.0.1:1,unix:///run/x",
            "\"unix:///run/x\": several controllers are reached over https:// alone",
        ),
        ("https://127.0.0.1:1,", "\"\": a URL is needed, such as https://node-1.example:17070"),
    ] {
        let error =
            periapt.refused(["agent", "run", "--controller", urls, "--name", "one", "--data", "one"])?;
        assert!(error.contains(&format!("invalid controller URL {fault}")), "{error}");
        assert!(!periapt.path().join("one").exists(), "nothing is written before");
    }
    Ok(())
}
