//! Streams between a charm under test and workloads in memory.

use std::{cell::RefCell, rc::Rc};

use super::container::{Container, Serve, WorkloadRequest};
use crate::bindings::periapt::charm::{
    types::Error,
    workloads::{Received, Target},
};
use std::collections::BTreeMap;

/// The workloads of a unit in memory, and the streams that its hook has open.
#[derive(Default)]
pub(crate) struct Workloads {
    pub(crate) containers: BTreeMap<String, Container>,
    pub(crate) ports: BTreeMap<u16, Rc<RefCell<Serve>>>,
    streams: BTreeMap<u32, Stream>,
    last: u32,
}

enum Peer {
    Container(Container),
    Port(Rc<RefCell<Serve>>),
}

struct Stream {
    peer: Peer,
    /// The bytes that the charm sent and that were not answered yet.
    sent: Vec<u8>,
    answer: Vec<u8>,
    is_over: bool,
    /// The websocket that the stream has become.
    websocket: Option<String>,
    input: Vec<u8>,
}

/// The most streams of a hook, as on an agent.
const MAX_OPEN: usize = 16;

impl Workloads {
    pub(crate) fn connect(&mut self, target: &Target) -> Result<u32, Error> {
        if self.streams.len() == MAX_OPEN {
            return Err(Error::LimitExceeded(format!("more than {MAX_OPEN} streams are open at a time")));
        }
        let (peer, name) = match target {
            Target::Pebble(name) => (self.containers.get(name).cloned().map(Peer::Container), name.clone()),
            Target::Port(port) => (self.ports.get(port).cloned().map(Peer::Port), format!("port {port}")),
        };
        let nobody = || {
            Error::NotReady(format!(
                "nobody listens: the test has not started {name} beside the unit in memory"
            ))
        };
        let peer = peer.ok_or_else(nobody)?;
        let (sent, answer, input) = (Vec::new(), Vec::new(), Vec::new());
        self.last += 1;
        let stream = Stream { peer, sent, answer, is_over: false, websocket: None, input };
        self.streams.insert(self.last, stream);
        Ok(self.last)
    }

    pub(crate) fn read(&mut self, number: u32, most: u32, timeout: Option<u32>) -> Result<Received, Error> {
        let stream = self.stream(number)?;
        stream.read_errors();
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(stream.answer.len());
        if most > 0 {
            return Ok(Received::Bytes(stream.answer.drain(..most).collect()));
        }
        match (stream.is_over, timeout) {
            (true, _) => Ok(Received::End),
            (false, Some(_)) => Ok(Received::Nothing),
            // On an agent the hook waits until its time is over.
            (false, None) => Err(Error::Failed(
                "the workload in memory sends nothing: the hook would wait for ever".into(),
            )),
        }
    }

    pub(crate) fn write(&mut self, number: u32, bytes: &[u8]) -> Result<u32, Error> {
        let stream = self.stream(number)?;
        stream.sent.extend_from_slice(bytes);
        match stream.websocket {
            None => stream.answer_request(),
            Some(_) => stream.take_frames(),
        }
        Ok(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
    }

    pub(crate) fn shutdown(&mut self, number: u32) -> Result<(), Error> {
        self.stream(number).map(drop)
    }

    pub(crate) fn close(&mut self, number: u32) {
        self.streams.remove(&number);
    }

    fn stream(&mut self, number: u32) -> Result<&mut Stream, Error> {
        self.streams.get_mut(&number).ok_or_else(|| Error::NotFound(format!("stream {number} is not open")))
    }
}

impl Stream {
    /// Answers a request that is whole.
    fn answer_request(&mut self) {
        let Some(end) = self.sent.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return };
        let head = String::from_utf8_lossy(self.sent.get(..end).unwrap_or_default()).into_owned();
        let length =
            head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse::<usize>().ok());
        let Some(body) = self.sent.get(end + 4..end + 4 + length.unwrap_or(0)) else { return };
        let mut words = head.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let request = WorkloadRequest { method, path, body: body.to_vec() };
        self.sent.drain(..end + 4 + length.unwrap_or(0));
        let (kind, response) = match &self.peer {
            Peer::Port(serve) => ("text/plain", serve.borrow_mut()(&request)),
            Peer::Container(container) => {
                let mut inside = container.0.borrow_mut();
                if let Some(bytes) = inside.sends.clone() {
                    (self.answer, self.is_over) = (bytes, true);
                    return;
                }
                if request.path.contains("/websocket/") {
                    self.websocket = request.path.rsplit('/').next().map(str::to_owned);
                    self.answer =
                        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
                            .to_vec();
                    return;
                }
                let (kind, response) = inside.answer(&request);
                (kind, Some(response))
            }
        };
        self.is_over = true;
        let Some(response) = response else { return };
        let head = format!(
            "HTTP/1.1 {} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            response.status,
            response.body.len()
        );
        self.answer = [head.as_bytes(), &response.body].concat();
    }

    /// Takes the frames of a command's input. Its end runs the command.
    fn take_frames(&mut self) {
        while let Some((kind, payload, length)) = client_frame(&self.sent) {
            self.sent.drain(..length);
            if kind == 2 {
                self.input.extend(payload);
            } else if self.websocket.as_deref() == Some("stdio") {
                let Peer::Container(container) = &self.peer else { return };
                let output = container.0.borrow_mut().run(&self.input);
                self.answer.extend(frames(&output));
            }
        }
    }

    /// Fetches the errors that the command printed, once it has run.
    fn read_errors(&mut self) {
        if let (Some("stderr"), Peer::Container(container)) = (self.websocket.as_deref(), &self.peer)
            && let Some(errors) = container.0.borrow_mut().errors.pop()
        {
            self.answer.extend(frames(&errors));
        }
    }
}

/// Returns the kind, the payload and the whole length of a frame with a mask.
fn client_frame(bytes: &[u8]) -> Option<(u8, Vec<u8>, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)? & 0x7f);
    let (length, head) = match second {
        126 => (usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?])), 4),
        length => (usize::from(length), 2),
    };
    let mask = bytes.get(head..head + 4)?;
    let payload = bytes.get(head + 4..head + 4 + length)?;
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Some((first & 0x0f, payload, head + 4 + length))
}

/// Returns the frames of an output and of its end.
fn frames(output: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    for piece in output.chunks(1 << 15) {
        frames.extend([0x82, 126]);
        frames.extend(u16::try_from(piece.len()).unwrap_or_default().to_be_bytes());
        frames.extend(piece);
    }
    frames.extend(b"\x81\x11{\"command\":\"end\"}");
    frames
}
