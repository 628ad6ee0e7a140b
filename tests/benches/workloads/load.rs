//! The clients that ask a server.

use std::{
    env,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};

/// The first argument of this program when it is a client.
pub(crate) const CLIENT: &str = "client";

/// The clients that ask at a time, each over a connection of its own.
pub(crate) const CLIENTS: usize = 8;

/// The time for which a server is asked in one round.
const LASTING: Duration = Duration::from_secs(3);

/// The longest answer.
const LONGEST: usize = 64 << 10;

/// A server, and the network from which it is asked.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// A process whose user and network namespaces the clients enter.
    pub(crate) inside: Option<u32>,
}

/// The figures of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The time that half of the requests took at most, in milliseconds.
    pub(crate) p50: f64,
    /// The time that 99 % of the requests took at most, in milliseconds.
    pub(crate) p99: f64,
}

impl Figures {
    /// Returns the medians of rounds, each figure by itself.
    pub(crate) fn median(rounds: &[Self]) -> Self {
        let median = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Self {
            rate: median(|round| round.rate),
            p50: median(|round| round.p50),
            p99: median(|round| round.p99),
        }
    }
}

impl Place {
    /// Lets clients in a process of their own ask the server, and returns their figures.
    pub(crate) fn asked(&self) -> anyhow::Result<Figures> {
        let own = env::current_exe()?;
        let mut command = match self.inside {
            None => Command::new(own),
            Some(process) => {
                let mut command = Command::new("nsenter");
                command.args([
                    "--preserve-credentials",
                    "--user",
                    "--net",
                    "--target",
                    &process.to_string(),
                    "--",
                ]);
                command.arg(own);
                command
            }
        };
        command.args([CLIENT, &self.address.to_string()]).stdin(Stdio::null()).stderr(Stdio::inherit());
        let done = command.output()?;
        let text = String::from_utf8(done.stdout)?;
        ensure!(done.status.success(), "the clients of {}: {text}", self.address);
        let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let [rate, p50, p99] = numbers.as_slice() else { bail!("the clients say {text:?}") };
        Ok(Figures { rate: *rate, p50: *p50, p99: *p99 })
    }
}

/// Asks the server at an address for a while, and prints the figures.
pub(crate) fn client(arguments: &[String]) -> anyhow::Result<()> {
    let address: SocketAddr = arguments.first().context("an address")?.parse()?;
    let began = Instant::now();
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| thread::spawn(move || ask(address, began + LASTING))).collect();
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
    }
    let taken = began.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |percent: usize| {
        let time = times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    };
    println!("{} {} {}", times.len() as f64 / taken, at(50), at(99));
    Ok(())
}

/// Sends request after request, over one connection for as long as the server keeps it, and returns how long each took.
fn ask(address: SocketAddr, until: Instant) -> anyhow::Result<Vec<Duration>> {
    let mut stream = connected(address)?;
    let (mut times, mut buffer) = (Vec::new(), Vec::with_capacity(LONGEST));
    while Instant::now() < until {
        let began = Instant::now();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        answer(&mut stream, &mut buffer)?;
        times.push(began.elapsed());
        // nginx ends a connection with its thousandth answer.
        if head(&buffer).is_some_and(|(head, _)| head.contains("connection: close")) {
            stream = connected(address)?;
        }
    }
    Ok(times)
}

fn connected(address: SocketAddr) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

/// Reads one answer, with a length or in chunks.
fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<()> {
    buffer.clear();
    let mut piece = [0; 4 << 10];
    loop {
        let read = stream.read(&mut piece)?;
        ensure!(read > 0, "the server ended the connection after {} bytes", buffer.len());
        buffer.extend_from_slice(piece.get(..read).unwrap_or_default());
        ensure!(buffer.len() <= LONGEST, "the answer is too long");
        if is_whole(buffer)? {
            ensure!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(buffer));
            return Ok(());
        }
    }
}

/// Returns the head of an answer in small letters, and the length of its body so far, once the head is there.
fn head(answer: &[u8]) -> Option<(String, usize)> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).to_ascii_lowercase();
    Some((head, answer.len() - end - 4))
}

fn is_whole(answer: &[u8]) -> anyhow::Result<bool> {
    let Some((head, body)) = head(answer) else { return Ok(false) };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    match length {
        Some(length) => Ok(body >= length.trim().parse::<usize>()?),
        None => Ok(answer.ends_with(b"\r\n0\r\n\r\n")),
    }
}
