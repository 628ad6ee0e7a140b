//! The streams of a command of `exec`: websockets on one side, pipes or a terminal on the other.

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use periapt_pebble::{ProcessId, Signal, WebsocketName};
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, unix::AsyncFd},
    net::unix::pipe,
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::{
    driver::{Order, Orders, terminal},
    event::{Halves, Websocket},
    streams::CHUNK,
};

/// The text that ends a stream.
const END: &str = r#"{"command":"end"}"#;

/// The time in which a client closes a websocket after its stream has ended.
const LINGER: Duration = Duration::from_secs(5);

/// The websockets of a command, which arrive one by one.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    control: Option<oneshot::Receiver<Websocket>>,
    stdio: Option<oneshot::Receiver<Websocket>>,
    stderr: Option<oneshot::Receiver<Websocket>>,
}

impl Sockets {
    /// Returns the place for a websocket.
    pub(crate) fn expect(&mut self, name: WebsocketName) -> oneshot::Sender<Websocket> {
        let (sender, receiver) = oneshot::channel();
        let place = match name {
            WebsocketName::Control => &mut self.control,
            WebsocketName::Stdio => &mut self.stdio,
            WebsocketName::Stderr => &mut self.stderr,
        };
        *place = Some(receiver);
        sender
    }
}

/// A terminal as tasks use it.
#[derive(Debug, Clone)]
struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled();
            match guard.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), room)?)) {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // The last process has closed its side.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => return Poll::Ready(Ok(())),
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            match guard.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?)) {
                Ok(result) => return Poll::Ready(result),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The pod's sides of a command's streams.
pub(crate) struct Pipes {
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    stderr: Option<pipe::Receiver>,
    terminal: Option<Terminal>,
}

impl Pipes {
    /// Creates the sides of pipes.
    pub(crate) fn new(stdin: pipe::Sender, stdout: pipe::Receiver, stderr: Option<pipe::Receiver>) -> Self {
        Self { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr, terminal: None }
    }

    /// Creates the side of a terminal.
    pub(crate) fn terminal(ours: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&ours, true)?;
        #[expect(unsafe_code, reason = "the descriptor is owned, and stays the same one until it is dropped")]
        let ours = unsafe { AsyncFd::register(ours) }?;
        let terminal = Terminal(Arc::new(ours));
        Ok(Self {
            stdin: Box::new(terminal.clone()),
            stdout: Box::new(terminal.clone()),
            stderr: None,
            terminal: Some(terminal),
        })
    }
}

/// Carries the streams until the process has ended and its output is read. Returns the exit code; none if the process
/// was never started.
pub(crate) async fn run(
    process: ProcessId,
    sockets: Sockets,
    pipes: Pipes,
    exit: oneshot::Receiver<i32>,
    orders: Orders,
    abandon: CancellationToken,
) -> Option<i32> {
    let Pipes { stdin, stdout, stderr, terminal } = pipes;
    let control = Task(tokio::spawn(control(process, sockets.control, orders, terminal)));
    let output = async {
        let (sink, stream) = arrived(sockets.stdio).await.unzip();
        let input = Task(tokio::spawn(send_in(stream, stdin)));
        send_out(stdout, sink, Some(input)).await;
    };
    let errors = async {
        let Some(stderr) = stderr else { return };
        let (sink, stream) = arrived(sockets.stderr).await.unzip();
        let input = Task(tokio::spawn(send_in(stream, tokio::io::sink())));
        send_out(stderr, sink, Some(input)).await;
    };
    let streams = async { tokio::join!(output, errors) };
    let code = tokio::select! {
        (code, _) = async { tokio::join!(exit, streams) } => code.ok(),
        () = abandon.cancelled() => Some(128 + Signal::KILL.number()),
    };
    drop(control);
    code
}

/// A task that ends with its owner.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for a websocket that was granted; none if its client has gone.
async fn arrived(socket: Option<oneshot::Receiver<Websocket>>) -> Option<Halves> {
    socket?.await.ok().map(futures_util::StreamExt::split)
}

/// Sends what a client writes to a process, until the client ends the stream.
async fn send_in(stream: Option<SplitStream<Websocket>>, stdin: impl AsyncWrite + Unpin) {
    let Some(mut stream) = stream else { return };
    let mut stdin = Some(stdin);
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(bytes) => {
                // A process that reads no more gets no more; its client may go on.
                if let Some(open) = &mut stdin
                    && open.write_all(&bytes).await.is_err()
                {
                    stdin = None;
                }
            }
            Message::Text(text) if is_end(text.as_str()) => {
                if let Some(mut open) = stdin.take() {
                    let _ = open.shutdown().await;
                }
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
}

fn is_end(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Command {
        command: String,
    }
    serde_json::from_str::<Command>(text).is_ok_and(|it| it.command == "end")
}

/// Sends what a process writes to a client, until all writers have closed the stream. A client that has gone closes
/// the stream for the process.
async fn send_out(
    mut output: impl AsyncRead + Unpin,
    sink: Option<SplitSink<Websocket, Message>>,
    mut input: Option<Task>,
) {
    let Some(mut sink) = sink else { return };
    let mut buffer = vec![0; CHUNK];
    loop {
        let ended = async {
            match &mut input {
                Some(input) => {
                    let _ = (&mut input.0).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            read = output.read(&mut buffer) => match read {
                Ok(length) if length > 0 => {
                    let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                    if sink.send(Message::Binary(bytes.into())).await.is_err() {
                        return;
                    }
                }
                _ => break,
            },
            // The client's side is closed.
            () = ended => return,
        }
    }
    let is_sent = sink.send(Message::Text(END.into())).await.is_ok();
    let Some(mut input) = input.filter(|_| is_sent) else { return };
    // The client reads the end in its time; the change does not wait for it.
    tokio::spawn(async move {
        let _ = timeout(LINGER, &mut input.0).await;
        let _ = timeout(LINGER, sink.close()).await;
    });
}

/// A client's order about a command.
#[derive(Debug, Deserialize)]
struct ControlMessage {
    command: String,
    #[serde(default)]
    signal: Option<SignalOrder>,
    #[serde(default)]
    resize: Option<Size>,
}

#[derive(Debug, Deserialize)]
struct SignalOrder {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Size {
    width: u16,
    height: u16,
}

/// Carries out the orders of a client until it has gone. A client that goes without closing its websocket has died, or the
/// way to it has: the command is killed, as Pebble does it.
async fn control(
    process: ProcessId,
    socket: Option<oneshot::Receiver<Websocket>>,
    orders: Orders,
    terminal: Option<Terminal>,
) {
    // Both halves stay, so that pings are answered.
    let Some((_sink, mut stream)) = arrived(socket).await else { return };
    loop {
        let text = match stream.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => return,
            Some(Ok(_)) => continue,
            Some(Err(_)) => {
                signal(&orders, process, Signal::KILL).await;
                return;
            }
        };
        let Ok(order) = serde_json::from_str::<ControlMessage>(text.as_str()) else { continue };
        match order {
            ControlMessage { command, signal: Some(SignalOrder { name }), .. } if command == "signal" => {
                if let Some(wanted) = Signal::from_name(&name) {
                    signal(&orders, process, wanted).await;
                }
            }
            ControlMessage { command, resize: Some(Size { width, height }), .. } if command == "resize" => {
                if let Some(Terminal(terminal)) = &terminal {
                    let _ = terminal::resize(terminal.get_ref(), width, height);
                }
            }
            _ => {}
        }
    }
}

/// Sends a signal. A client that sends signals faster than they are carried out waits.
async fn signal(orders: &Orders, process: ProcessId, signal: Signal) {
    let (place, done) = oneshot::channel();
    let _ = orders.send(Order::SignalFor(process, signal, place));
    let _ = done.await;
}
