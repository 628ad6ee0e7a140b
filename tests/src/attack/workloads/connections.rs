//! The connections of a hostile container: those that it makes, and those that it serves.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{ErrorKind, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use anyhow::{Context as _, anyhow, ensure};

use super::{super::row::StoppedBy, ADDRESS, AttackedAgent, HONEST, HOSTILE};

/// The connections of a unit at most, as the agent bounds them.
pub(super) const MAX_CONNECTIONS: usize = 256;

/// The connections beyond the bound.
const BEYOND: usize = 64;

/// The connections that are filled or left unread. The bytes that wait for each take up to 10 MiB of the system's memory.
const SILENT: usize = 32;

/// The most bytes that the agent may keep of a connection, with room to spare.
const MAX_KEPT: usize = 4 << 20;

/// The time in which a connection is served or refused, on a machine that others use.
const BEGINS_WITHIN: Duration = Duration::from_secs(30);

/// The pause after which a peer that took nothing takes nothing more.
const PAUSE: Duration = Duration::from_millis(100);

/// The pause after which a peer that sent nothing sends nothing more.
const ENDED: Duration = Duration::from_secs(5);

/// The time after which a connection that is still open has reached a server. One that is refused is reset long before.
const HELD_FOR: Duration = Duration::from_secs(8);

/// The request to each target. Servers that speak TLS answer it by an alert.
const REQUEST: &str = "GET / HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n";

/// The command of a server that says one byte to each client, and never reads. No other process of the container sleeps by
/// this program.
const DEAF: &str = "sh -c 'echo; exec usleep 600000000'";

/// The command of a server that answers for ever.
const ENDLESS: &str = "yes";

/// A target of the hostile container's connections.
struct ForbiddenTarget {
    host: String,
    port: u16,
    /// The server that is there; none: a connection would leave this host.
    server: Option<SocketAddr>,
}

impl AttackedAgent {
    pub(super) fn forbidden_targets(&self) -> anyhow::Result<StoppedBy> {
        let (listeners, targets) = self.targets()?;
        // A server of the container itself is a target that it may reach by the same way.
        let _served = self.serve(DEAF)?;
        let own = targets.len();
        let named = targets.iter().map(|target| (target.host.as_str(), target.port));
        let script = asking_script(named.chain([("hostile-0", HOSTILE)]));
        let servers: Vec<SocketAddr> = targets.iter().filter_map(|target| target.server).collect();
        let (asked, reached) = thread::scope(|scope| {
            let controls: Vec<_> =
                servers.iter().map(|server| (server, scope.spawn(move || is_reached(*server)))).collect();
            let asked = self.sh(&script);
            let reached: Vec<_> = controls.into_iter().map(|(server, asks)| (server, asks.join())).collect();
            (asked, reached)
        });
        for (server, is_reached) in reached {
            let is_reached = is_reached.map_err(|_| anyhow!("a client of {server} panicked"))?;
            ensure!(is_reached?, "{server} answers nobody: a container that reached it would not be seen");
        }
        self.end_servers()?;
        let text = asked?.text;
        let ends = ends(&text);
        let end = |number: usize| ends.get(&number).copied().with_context(|| format!("{number}: {text:?}"));
        let (_, own_bytes) = end(own)?;
        ensure!(own_bytes > 0, "the container does not even reach itself by its name: {text:?}");
        let mut others = Vec::new();
        for (number, target) in targets.iter().enumerate() {
            let (code, bytes) = end(number)?;
            // A connection that is refused may be opened first, and then reset: `nc` ends with 0 or 1 then. It is ended by
            // force where a connection is held open.
            if bytes > 0 || code > 1 {
                let ForbiddenTarget { host, port, .. } = target;
                others.push(format!("{host} {port}: {bytes} bytes, return code {code}"));
            }
        }
        for listener in &listeners {
            listener.set_nonblocking(true)?;
            let mut connections = 0;
            while listener.accept().is_ok() {
                connections += 1;
            }
            // One is this process's own.
            if connections > 1 {
                others.push(format!("{} connections to {}", connections - 1, listener.local_addr()?));
            }
        }
        Ok(match others.is_empty() {
            true => {
                let count = targets.len();
                StoppedBy::Bound(format!("{count} targets refused, {} of them on this host", servers.len()))
            }
            false => StoppedBy::Nobody(others.join("; ")),
        })
    }

    /// Returns the targets, and the servers of this process among them, which accept connections and say nothing.
    fn targets(&self) -> anyhow::Result<(Vec<TcpListener>, Vec<ForbiddenTarget>)> {
        let on_host = |host: &str, server: SocketAddr| ForbiddenTarget {
            host: host.to_owned(),
            port: server.port(),
            server: Some(server),
        };
        let outside = |host: &str, port: u16| ForbiddenTarget { host: host.to_owned(), port, server: None };
        let page = SocketAddr::from((ADDRESS, HONEST));
        let address = ADDRESS.to_string();
        let mut targets = vec![
            outside("169.254.169.254", 80),
            outside("1.1.1.1", 443),
            on_host("127.0.0.1", SocketAddr::from((Ipv4Addr::LOCALHOST, self.controller))),
            on_host(&address, SocketAddr::from((ADDRESS, self.peers))),
            on_host(&address, page),
            on_host("web-page-0", page),
            on_host("web-page-0.web-page-endpoints.honest.svc.cluster.local", page),
        ];
        let (host, mut listeners) = (host_address(), Vec::new());
        for port in [self.controller, self.peers, 0] {
            // On a host that has the loopback alone, the controller has its port already.
            let Ok(listener) = TcpListener::bind((host, port)) else { continue };
            targets.push(on_host(&host.to_string(), listener.local_addr()?));
            listeners.push(listener);
        }
        ensure!(!listeners.is_empty(), "no server can listen at {host}");
        Ok((listeners, targets))
    }

    /// Starts a server in the hostile container, which runs a command for each connection. Returns its first one, after the
    /// first byte of the server.
    fn serve(&self, command: &str) -> anyhow::Result<TcpStream> {
        self.end_servers()?;
        let started = self.sh(&format!("nc -ll -p {HOSTILE} -e {command} >/dev/null 2>&1 & true"))?;
        ensure!(started.code == 0, "{}", started.text);
        let first = Cell::new(None);
        self.until("the hostile server serves", || {
            let served = served()?;
            let is_served = served.is_some();
            first.set(served);
            Ok(is_served)
        })?;
        first.take().context("the hostile server serves")
    }

    /// Ends the servers of the hostile container.
    fn end_servers(&self) -> anyhow::Result<()> {
        self.sh("killall nc usleep yes; true").map(|_| ())
    }

    pub(super) fn deaf_server(&self) -> anyhow::Result<StoppedBy> {
        let (mut held, mut refused) = (vec![self.serve(DEAF)?], 0);
        for _ in 1..MAX_CONNECTIONS + BEYOND {
            match served()? {
                Some(stream) => held.push(stream),
                None => refused += 1,
            }
        }
        let (piece, mut most, may_wait) = (vec![b'x'; 64 << 10], 0, may_wait()?);
        for stream in held.iter_mut().take(SILENT) {
            let mut taken = 0;
            while taken <= may_wait {
                match stream.write(&piece) {
                    Ok(written) if written > 0 => taken += written,
                    _ => break,
                }
            }
            most = most.max(taken);
        }
        for stream in &held {
            stream.set_nonblocking(true)?;
        }
        held.retain(is_open);
        let open = held.len();
        self.end_servers()?;
        let seen = format!("{open} connections held, {refused} refused, {} MiB of one taken", most >> 20);
        ensure!(open >= MAX_CONNECTIONS / 2, "the hostile server cannot hold as many as it may: {seen}");
        Ok(match open <= MAX_CONNECTIONS && refused >= BEYOND && most <= may_wait {
            true => StoppedBy::Bound(seen),
            false => StoppedBy::Nobody(seen),
        })
    }

    pub(super) fn endless_answer(&self) -> anyhow::Result<StoppedBy> {
        let may_wait = may_wait()?;
        // They are left open, and nothing more is read for now.
        let mut unread = vec![self.serve(ENDLESS)?];
        while unread.len() < SILENT {
            unread.push(served()?.context("the hostile server serves further clients")?);
        }
        let reader = served()?.context("the hostile server serves one that reads")?;
        reader.set_read_timeout(Some(BEGINS_WITHIN))?;
        let read = read_up_to(&reader, 2 * may_wait);
        ensure!(read >= 2 * may_wait, "the endless answer ended after {read} bytes");
        drop(reader);
        self.end_servers()?;
        // The bytes that waited on the way come now, and then the end.
        let (mut least, mut most) = (usize::MAX, 0);
        for stream in &unread {
            stream.set_read_timeout(Some(ENDED))?;
            let waiting = read_up_to(stream, may_wait + 1);
            (least, most) = (least.min(waiting), most.max(waiting));
        }
        ensure!(least > 0, "the hostile server left a client without an answer");
        Ok(match most <= may_wait {
            true => StoppedBy::Bound(format!(
                "{} MiB read, {} MiB at most wait for each of {} others",
                read >> 20,
                most >> 20,
                unread.len()
            )),
            false => StoppedBy::Nobody(format!("more than {} MiB wait for one client", may_wait >> 20)),
        })
    }
}

/// Opens a connection to the hostile server, and reads the server's first byte. None: the connection is refused or ended.
fn served() -> anyhow::Result<Option<TcpStream>> {
    let address = SocketAddr::from((ADDRESS, HOSTILE));
    let begun = TcpStream::connect_timeout(&address, BEGINS_WITHIN).and_then(|mut stream| {
        stream.set_read_timeout(Some(BEGINS_WITHIN))?;
        let read = stream.read(&mut [0; 1])?;
        stream.set_write_timeout(Some(PAUSE))?;
        Ok((read > 0).then_some(stream))
    });
    match begun {
        Err(error) if is_refusal(&error) => Ok(None),
        begun => begun.context("a connection to the hostile server is neither served nor refused"),
    }
}

/// Returns the most bytes that may wait on the way to or from a peer that reads none: those that the system keeps at both ends
/// of two connections, which hosts set differently, and those of the agent.
fn may_wait() -> anyhow::Result<usize> {
    let mut most = MAX_KEPT;
    for buffer in ["tcp_rmem", "tcp_wmem"] {
        let sizes = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{buffer}")).context(buffer)?;
        let largest = sizes.split_whitespace().last().and_then(|size| size.parse::<usize>().ok());
        most += 2 * largest.with_context(|| format!("{buffer}: {sizes:?}"))?;
    }
    Ok(most)
}

fn is_refusal(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Returns true if a connection is open, and nothing comes.
pub(super) fn is_open(mut stream: &TcpStream) -> bool {
    let read = stream.read(&mut [0; 1]);
    read.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Reads until so many bytes have come, or until no more come. Returns their number.
fn read_up_to(mut stream: &TcpStream, most: usize) -> usize {
    let (mut read, mut piece) = (0, vec![0; 64 << 10]);
    while read < most {
        match stream.read(&mut piece) {
            Ok(length) if length > 0 => read += length,
            _ => break,
        }
    }
    read
}

/// Returns a script that asks all targets at once. For each it writes its number, the return code of `nc`, and the number
/// of bytes that came.
fn asking_script<'a>(targets: impl Iterator<Item = (&'a str, u16)>) -> String {
    let (held, asks) = (HELD_FOR.as_secs(), HELD_FOR.as_secs() + 1);
    let asked: String =
        targets.enumerate().map(|(number, (host, port))| format!("ask {number} {host} {port} & ")).collect();
    let asks = format!("{{ printf '{REQUEST}'; sleep {asks}; }} | timeout {held} nc $2 $3 >/asked-$1");
    let told = "echo \"$1 $? $(wc -c </asked-$1)\"";
    format!("exec 2>/dev/null; ask() {{ {asks}; {told}; }}; {asked}wait; rm -f /asked-*")
}

/// Reads the lines of that script: for each number, the return code and the bytes.
fn ends(text: &str) -> BTreeMap<usize, (u32, u64)> {
    let end = |line: &str| {
        let mut words = line.split_whitespace();
        let number: usize = words.next()?.parse().ok()?;
        let code: u32 = words.next()?.parse().ok()?;
        let bytes: u64 = words.next()?.parse().ok()?;
        Some((number, (code, bytes)))
    };
    text.lines().filter_map(end).collect()
}

/// Returns true if a server answers this process, by the judgement of the container's connections: it sends a byte, or it
/// holds the connection open.
fn is_reached(server: SocketAddr) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&server, BEGINS_WITHIN)?;
    stream.write_all(REQUEST.replace("\\r\\n", "\r\n").as_bytes())?;
    stream.set_read_timeout(Some(HELD_FOR))?;
    match stream.read(&mut [0; 1]) {
        Ok(read) => Ok(read > 0),
        Err(error) => Ok(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)),
    }
}

/// Returns an address of this host that is not the loopback's, if it has one.
pub(super) fn host_address() -> IpAddr {
    // No packet is sent by this.
    let own = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    own().unwrap_or(Ipv4Addr::LOCALHOST.into())
}
