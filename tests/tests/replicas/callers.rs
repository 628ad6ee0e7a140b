//! Callers that speak HTTP to the sockets of the controllers by hand. They draw the ids of their requests, send a request
//! again to the next controller if it is not answered, and note with each answer how new the state is that it shows. They
//! share no code with Periapt's client.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail, ensure};
use parking_lot::Mutex;
use periapt_host_api::{RequestId, agent::header, command::Command};
use serde_json::{Value, json};

/// The model whose setting the callers write and read.
pub(crate) const REGISTER: &str = "register";
/// The setting. It has no effect.
pub(crate) const SETTING: &str = "apt-mirror";
/// The pause between two requests of a caller.
const PAUSE: Duration = Duration::from_millis(150);
/// The longest wait for one answer. A controller that is paused gives none.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// The time for which a request is sent again. The controllers keep answers for longer.
const REPEATED_FOR: Duration = Duration::from_secs(60);

/// All that callers did.
#[derive(Default)]
pub(crate) struct History {
    moments: AtomicUsize,
    calls: Mutex<Vec<Call>>,
}

/// A request, or several with one id, that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The moments of the first request and of the answer. Moments of all callers are ordered as they happened.
    pub(crate) called: usize,
    pub(crate) returned: usize,
    /// The position of the log that the caller had seen before.
    pub(crate) floor: u64,
    /// The position that the controller had reached when it answered; the highest of all if it did not tell.
    pub(crate) reached: u64,
    pub(crate) told: Told,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// The register was written.
    Written(RequestId),
    /// No controller told whether the register was written.
    Doubtful(RequestId),
    /// Each controller told that the register was not written, or took no request.
    NotWritten(RequestId),
    /// The value of the register.
    Value(String),
    /// There is a model of this name.
    Found(String),
    /// There is none.
    Missing(String),
}

impl History {
    fn moment(&self) -> usize {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns the calls in the order in which they ended.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().clone()
    }

    /// Returns the number of writes that were acknowledged.
    pub(crate) fn written(&self) -> usize {
        self.calls.lock().iter().filter(|call| matches!(call.told, Told::Written(_))).count()
    }
}

/// A caller on one of the hosts.
pub(crate) struct Caller<'a> {
    number: usize,
    sockets: &'a [PathBuf],
    history: &'a History,
    /// The newest state that was seen, as a controller told it, and its position.
    seen: Option<(String, u64)>,
    /// The time of the start, which tells the ids of this run from those of others.
    began: u64,
    drawn: u32,
}

/// The end of one request.
enum Sent {
    Answered(Reply),
    /// Nothing was sent.
    Unreachable,
    /// It was sent, and no whole answer came.
    Lost,
}

/// An answer.
struct Reply {
    status: u16,
    seen: Option<String>,
    body: Value,
}

/// The outcome of a write, as one controller told it.
enum Outcome {
    Done,
    NothingHappened,
    Unknown,
}

impl Reply {
    /// Reads an answer; none if it is not whole.
    fn read(bytes: &[u8]) -> anyhow::Result<Option<Self>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
        let (head, body) = bytes.split_at(end + 4);
        let head = std::str::from_utf8(head)?;
        let value_of = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
        };
        let length = value_of("content-length").map(|length| length.parse::<usize>()).transpose()?;
        if length.is_some_and(|length| body.len() < length) {
            return Ok(None);
        }
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        let text = || format!("an answer of JSON: {head}{}", String::from_utf8_lossy(body));
        let body = serde_json::from_slice(body).with_context(text)?;
        Ok(Some(Self { status, seen: value_of(header::SEEN), body }))
    }

    /// Returns the code of a refusal of the whole request.
    fn code(&self) -> &str {
        self.body.get("code").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the outcome of the only command of a request.
    fn outcome(&self) -> anyhow::Result<Outcome> {
        if self.status == 200 && self.body.pointer("/results/0/ok").is_some() {
            return Ok(Outcome::Done);
        }
        let code = self.body.pointer("/results/0/error/code").and_then(Value::as_str);
        match code.unwrap_or(self.code()) {
            "outcome-unknown" => Ok(Outcome::Unknown),
            code if is_for_later(code) => Ok(Outcome::NothingHappened),
            _ => bail!("a write was refused: {}", self.body),
        }
    }
}

/// Returns true if the same request may succeed later.
fn is_for_later(code: &str) -> bool {
    matches!(code, "try-again" | "storage-unavailable" | "too-many-requests")
}

impl<'a> Caller<'a> {
    /// Returns the caller of a host, which reaches the controllers of all hosts by these sockets.
    pub(crate) fn new(number: usize, sockets: &'a [PathBuf], history: &'a History) -> anyhow::Result<Self> {
        let began = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
        Ok(Self { number, sockets, history, seen: None, began, drawn: 0 })
    }

    /// Writes and reads until it is told to end.
    pub(crate) fn run(mut self, ended: &AtomicBool) -> anyhow::Result<()> {
        for count in 0.. {
            if ended.load(Ordering::SeqCst) {
                break;
            }
            match count % 3 {
                0 => self.write(count)?,
                1 => self.read_register(count)?,
                _ => self.look_for(count)?,
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Writes the register, by a request to the caller's own controller. It is sent to the next one with the same id when no
    /// answer comes.
    fn write(&mut self, count: usize) -> anyhow::Result<()> {
        let (id, value) = (self.draw(), format!("{}-{count}", self.number));
        let set = [(SETTING.to_owned(), value)].into();
        let write = Command::SetModelConfig { set, reset: Vec::new() };
        let body = json!({ "commands": [write] }).to_string();
        let (called, floor, began) = (self.history.moment(), self.floor(), Instant::now());
        let (mut told, mut reached) = (Told::NotWritten(id), u64::MAX);
        let mut controller = self.number;
        while began.elapsed() < REPEATED_FOR {
            match self.sent(controller, Some(id), &write_line(), &body)? {
                Sent::Unreachable => {}
                Sent::Lost => told = Told::Doubtful(id),
                Sent::Answered(reply) => match reply.outcome()? {
                    Outcome::Done => {
                        told = Told::Written(id);
                        reached = self.note(&reply);
                        break;
                    }
                    Outcome::Unknown => told = Told::Doubtful(id),
                    // This says nothing about an earlier request.
                    Outcome::NothingHappened => {}
                },
            }
            controller += 1;
            thread::sleep(PAUSE);
        }
        let is_written = matches!(told, Told::Written(_));
        self.ended(called, floor, reached, told);
        // Another controller knows the request, and carries nothing out.
        if is_written
            && count.is_multiple_of(2)
            && let Sent::Answered(reply) = self.sent(controller + 1, Some(id), &write_line(), &body)?
        {
            reply.outcome()?;
            self.note(&reply);
        }
        Ok(())
    }

    fn read_register(&mut self, count: usize) -> anyhow::Result<()> {
        let (called, floor) = (self.history.moment(), self.floor());
        let line = format!("GET /v1/models/{REGISTER}/config");
        let Some(reply) = self.read(count, &line)? else { return Ok(()) };
        ensure!(reply.status == 200, "{line}: {}", reply.body);
        let value = reply.body.pointer(&format!("/{SETTING}/value")).and_then(Value::as_str);
        let (told, reached) = (Told::Value(value.unwrap_or_default().to_owned()), self.note(&reply));
        self.ended(called, floor, reached, told);
        Ok(())
    }

    /// Looks for one of the models that the other clients add.
    fn look_for(&mut self, count: usize) -> anyhow::Result<()> {
        let name = format!("contested-{}", count / 3);
        let (called, floor) = (self.history.moment(), self.floor());
        let line = format!("GET /v1/models/{name}");
        let Some(reply) = self.read(count, &line)? else { return Ok(()) };
        let told = match (reply.status, reply.code()) {
            (200, _) => Told::Found(name),
            (404, "not-found") => Told::Missing(name),
            _ => bail!("{line}: {}", reply.body),
        };
        let reached = self.note(&reply);
        self.ended(called, floor, reached, told);
        Ok(())
    }

    /// Asks one of the controllers; none if it does not answer now.
    fn read(&self, count: usize, line: &str) -> anyhow::Result<Option<Reply>> {
        Ok(match self.sent(self.number + count / 3, None, line, "")? {
            Sent::Answered(reply) if reply.status >= 400 && is_for_later(reply.code()) => None,
            Sent::Answered(reply) => Some(reply),
            Sent::Unreachable | Sent::Lost => None,
        })
    }

    fn ended(&self, called: usize, floor: u64, reached: u64, told: Told) {
        // A program that tells no position does not know what its caller has seen, either.
        let floor = if reached == u64::MAX { 0 } else { floor };
        let call = Call { called, returned: self.history.moment(), floor, reached, told };
        self.history.calls.lock().push(call);
    }

    /// Returns the position that this caller has seen.
    fn floor(&self) -> u64 {
        self.seen.as_ref().map_or(0, |(_, position)| *position)
    }

    /// Takes over how new the state of an answer is, and returns its position.
    fn note(&mut self, reply: &Reply) -> u64 {
        let Some(told) = &reply.seen else { return u64::MAX };
        let position = told.rsplit('/').next().and_then(|position| position.parse().ok());
        let position = position.unwrap_or(u64::MAX);
        if position >= self.floor() {
            self.seen = Some((told.clone(), position));
        }
        position
    }

    /// Draws the id of a request.
    fn draw(&mut self) -> RequestId {
        self.drawn += 1;
        let id = (u128::from(self.began) << 64) | ((self.number as u128) << 32) | u128::from(self.drawn);
        RequestId::from_random_bytes(id.to_be_bytes())
    }

    /// Sends a request to a controller.
    fn sent(&self, controller: usize, id: Option<RequestId>, line: &str, body: &str) -> anyhow::Result<Sent> {
        let socket = self.sockets.get(controller % self.sockets.len()).context("a socket")?;
        let Ok(mut stream) = UnixStream::connect(socket) else { return Ok(Sent::Unreachable) };
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        let mut text = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\
             content-type: application/json\r\n",
            body.len()
        );
        if let Some(id) = id {
            text.push_str(&format!("{}: {id}\r\n", header::REQUEST_ID));
        }
        if let Some((seen, _)) = &self.seen {
            text.push_str(&format!("{}: {seen}\r\n", header::SEEN));
        }
        text.push_str(&format!("\r\n{body}"));
        let mut answer = Vec::new();
        let exchanged = stream.write_all(text.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
        let reply = match exchanged {
            Ok(_) => Reply::read(&answer)?,
            Err(_) => None,
        };
        Ok(reply.map_or(Sent::Lost, Sent::Answered))
    }
}

fn write_line() -> String {
    format!("POST /v1/models/{REGISTER}/commands")
}

#[test]
fn an_answer_that_is_cut_short_is_no_answer() -> anyhow::Result<()> {
    let body = r#"{"results":[{"ok":1}]}"#;
    let head = format!("HTTP/1.1 200 OK\r\nPeriapt-Seen: s/7\r\ncontent-length: {}", body.len());
    let whole = format!("{head}\r\n\r\n{body}");
    let reply = Reply::read(whole.as_bytes())?.context("an answer")?;
    assert_eq!((reply.status, reply.seen.as_deref()), (200, Some("s/7")));
    assert!(matches!(reply.outcome()?, Outcome::Done));
    for end in 0..whole.len() {
        ensure!(Reply::read(&whole.as_bytes()[..end])?.is_none(), "cut at {end}");
    }
    let refused = |code: &str| {
        let body = json!({ "results": [{ "error": { "code": code } }] });
        Reply { status: 200, seen: None, body }.outcome()
    };
    assert!(matches!(refused("outcome-unknown")?, Outcome::Unknown));
    assert!(matches!(refused("try-again")?, Outcome::NothingHappened));
    assert!(refused("bad-request").is_err());
    Ok(())
}
