//! Downloads of an agent over a line that is cut.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use anyhow::Context as _;
use periapt_host_api::Digest;
use periapt_tests::Installation;
use serde_json::Value;

/// The bytes of the resource.
const CONTENT: usize = 6 << 20;

/// The most bytes that a connection passes to the agent.
const MOST: u64 = 2 << 20;

/// A line to a controller, whose connections end after so many bytes of answers. Its threads end with the process of the
/// test.
struct CutLine {
    url: String,
    counted: Arc<Counted>,
}

struct Counted {
    /// The most bytes of answers of a connection.
    most: AtomicU64,
    /// The bytes of answers that all connections have passed.
    passed: AtomicU64,
    /// The number of connections that were cut.
    cut: AtomicU64,
}

impl CutLine {
    fn to(controller: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("https://{}", listener.local_addr()?);
        let (most, passed, cut) = (AtomicU64::new(u64::MAX), AtomicU64::new(0), AtomicU64::new(0));
        let counted = Arc::new(Counted { most, passed, cut });
        let line = Self { url, counted: Arc::clone(&counted) };
        thread::spawn(move || {
            for agent in listener.incoming().flatten() {
                let Ok(controller) = TcpStream::connect(controller) else { continue };
                if let (Ok(asking), Ok(asked)) = (agent.try_clone(), controller.try_clone()) {
                    let counted = Arc::clone(&counted);
                    thread::spawn(move || pass_requests(asking, asked));
                    thread::spawn(move || counted.pass_answers(controller, agent));
                }
            }
        });
        Ok(line)
    }

    /// Cuts each connection after so many bytes of answers, from its beginning on.
    fn cut_after(&self, most: u64) {
        self.counted.most.store(most, Ordering::SeqCst);
    }

    fn passed(&self) -> u64 {
        self.counted.passed.load(Ordering::SeqCst)
    }

    fn cut(&self) -> u64 {
        self.counted.cut.load(Ordering::SeqCst)
    }
}

impl Counted {
    fn pass_answers(&self, mut controller: TcpStream, mut agent: TcpStream) {
        let (mut bytes, mut passed) = (vec![0; 16 << 10], 0);
        while let Ok(read @ 1..) = controller.read(&mut bytes) {
            let left = self.most.load(Ordering::SeqCst).saturating_sub(passed);
            let passing = usize::try_from(left).unwrap_or(usize::MAX).min(read);
            if passing < read {
                self.cut.fetch_add(1, Ordering::SeqCst);
            }
            if agent.write_all(bytes.get(..passing).unwrap_or_default()).is_err() {
                break;
            }
            passed += passing as u64;
            self.passed.fetch_add(passing as u64, Ordering::SeqCst);
            if passing < read {
                break;
            }
        }
        // The agent reads all that has passed, and then sees the end.
        let _ = agent.shutdown(Shutdown::Write);
        let _ = controller.shutdown(Shutdown::Both);
    }
}

/// Passes requests until the agent ends the connection. What it sends after the cut is read all the same: a connection that
/// is closed with bytes unread is reset, and the last answers are lost.
fn pass_requests(mut agent: TcpStream, mut controller: TcpStream) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(read @ 1..) = agent.read(&mut bytes) {
        let _ = controller.write_all(bytes.get(..read).unwrap_or_default());
    }
    let _ = controller.shutdown(Shutdown::Both);
}

#[test]
fn a_resource_comes_over_a_line_that_is_cut_again_and_again_and_each_byte_about_once() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "--no-agent"])?;
    let listing = periapt.json(["controllers"])?;
    let server = listing.pointer("/controllers/local/recent-server").and_then(Value::as_str);
    let line = CutLine::to(server.context("no server")?.parse()?)?;
    periapt.ok(["agent-token", "one", "--output", "one.token"])?;
    let words = ["agent", "run", "--controller", &line.url, "--name", "one", "--data", "one"];
    let mut agent = periapt.spawn(words.into_iter().chain(["--token-file", "one.token"]))?;
    assert_eq!(agent.first_line()?, "ready one");
    periapt.ok(["add-model", "test"])?;
    let content = "0123456789abcdef".repeat(CONTENT / 16);
    fs::write(periapt.path().join("small.txt"), "small")?;
    fs::write(periapt.path().join("large.txt"), &content)?;
    let script = "script=upgrade-charm: resource data\nstart: status active";
    periapt.deploy("probe", ["--config", script, "--resource", "data=small.txt"])?;
    periapt.wait_for(["model"])?;

    line.cut_after(MOST);
    let before = line.passed();
    periapt.ok(["attach-resource", "probe", "data=large.txt"])?;
    let sha256 = Digest::of(content.as_bytes());
    let expected = format!("revision=2 size={CONTENT} sha256={sha256} read={CONTENT}: 0123456789");
    periapt.ok_until(&["debug-log", "--replay", "--no-tail"], |log| log.contains(&expected))?;
    let (passed, size) = (line.passed() - before, CONTENT as u64);
    assert!(line.cut() >= 2, "{} connections were cut", line.cut());
    assert!(passed >= size && passed < size + size / 4, "{passed} of {size}");
    assert_eq!(fs::read_dir(periapt.path().join("one/incoming"))?.count(), 0, "nothing unfinished stays");
    assert_eq!(agent.end("TERM")?, Some(0));
    Ok(())
}
