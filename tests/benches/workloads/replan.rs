//! The cost of a replan: the time from the request to a pod that changes a service until the changed service runs, beside
//! the time in which this process starts the same program itself.

use std::{
    env, fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::binary;
use serde_json::{Value, json};

/// The first argument of this program when it is a service.
pub(crate) const SERVICE: &str = "service";

/// The longest wait for the pod.
const WITHIN: Duration = Duration::from_secs(60);

/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The starts of each side, by turns.
const STARTS: usize = 15;

/// A pod that isolates nothing, so that both sides start the same program in the same place.
struct Pod {
    child: Child,
    socket: PathBuf,
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pod {
    /// Starts a pod with its files in a directory.
    fn start(directory: &Path) -> anyhow::Result<Self> {
        let (socket, log) = (directory.join("pod.socket"), directory.join("pod.log"));
        let child = Command::new(binary()?)
            .args(["agent", "pod", "--driver", "plain", "--i-know-that-nothing-is-isolated", "--socket"])
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let pod = Self { child, socket };
        let began = Instant::now();
        while UnixStream::connect(&pod.socket).is_err() {
            ensure!(began.elapsed() < WITHIN, "the pod did not start: {}", fs::read_to_string(&log)?);
            sleep(LOOK);
        }
        Ok(pod)
    }

    /// Sends a request, and returns the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Value> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        ensure!(head.starts_with("HTTP/1.1 20"), "{method} {path}: {answer}");
        // The body may be in chunks, each of which has its length before it.
        let (from, to) = (body.find('{').context("a value")?, body.rfind('}').context("a value")?);
        Ok(serde_json::from_str(body.get(from..=to).context("a value")?)?)
    }

    /// Changes the service, and returns the time from the replan to the connection of the changed one.
    fn replan(&self, started: &TcpListener, number: usize) -> anyhow::Result<f64> {
        let own = env::current_exe()?;
        let command = format!("{} {SERVICE} {}", own.display(), started.local_addr()?);
        let service = json!({"override": "replace", "command": command, "startup": "enabled", "environment": {"N": number.to_string()}});
        let layer = json!({"services": {"bench": service}}).to_string();
        let layer =
            json!({"action": "add", "combine": true, "label": "bench", "format": "yaml", "layer": layer});
        self.ask("POST", "/v1/layers", &layer.to_string())?;
        let began = Instant::now();
        let change = self.ask("POST", "/v1/services", &json!({"action": "replan"}).to_string())?;
        let (service, _) = started.accept()?;
        let taken = began.elapsed().as_secs_f64() * 1e3;
        let change = change.get("change").and_then(Value::as_str).context("a change")?;
        // A service counts as started once it has run for a second.
        let ended = self.ask("GET", &format!("/v1/changes/{change}/wait?timeout=30s"), "")?;
        ensure!(ended.pointer("/result/status").is_some_and(|status| status == "Done"), "{ended}");
        drop(service);
        Ok(taken)
    }
}

/// Prints the row: milliseconds of a replan, and of a process that this one starts.
#[expect(clippy::print_stdout, reason = "figures are its output")]
pub(crate) fn measure(directory: &Path) -> anyhow::Result<()> {
    let pod = Pod::start(directory)?;
    let started = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (mut replans, mut processes) = (Vec::new(), Vec::new());
    for number in 0..=STARTS {
        let (replan, process) = (pod.replan(&started, number)?, process(&started)?);
        // The first round has no former service to end.
        if number > 0 {
            replans.push(replan);
            processes.push(process);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let (replan, process) = (median(&mut replans), median(&mut processes));
    println!();
    println!("| until a program runs | ms | beside the next row |");
    println!("| --- | ---: | ---: |");
    println!("| a replan that ends and starts a service | {replan:.2} | {:.2} |", replan / process);
    println!("| a process that is started without a pod | {process:.2} | |");
    Ok(())
}

/// Returns the milliseconds from the start of the program to its connection, without a pod.
fn process(started: &TcpListener) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut child = Command::new(env::current_exe()?)
        .args([SERVICE, &started.local_addr()?.to_string()])
        .stdin(Stdio::null())
        .spawn()?;
    let _service = started.accept()?;
    let taken = began.elapsed().as_secs_f64() * 1e3;
    child.kill()?;
    child.wait()?;
    Ok(taken)
}

/// Connects to the address, so that it is known that this program runs, and waits to be ended.
pub(crate) fn service(arguments: &[String]) -> anyhow::Result<()> {
    let address: SocketAddr = arguments.first().context("an address")?.parse()?;
    let mut stream = TcpStream::connect(address)?;
    let mut byte = [0];
    // Nothing comes. The former service is ended by a signal; one that nobody holds ends by itself.
    let _ = stream.read(&mut byte)?;
    sleep(WITHIN);
    Ok(())
}
