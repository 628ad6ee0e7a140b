//! Real packets between the hosts of a network.

use std::{
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket},
    os::fd::{AsFd as _, OwnedFd},
    time::{Duration, Instant},
};

use anyhow::{anyhow, ensure};
use periapt_tests::{POLL_INTERVAL, network_of};
use rustix::{
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketType, bind, connect, ipproto, recv, send, socket,
        sockopt::{Timeout, set_socket_timeout},
    },
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

/// The time after which a packet counts as dropped. Between two networks of one kernel, answers take some
/// microseconds.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// The time for what must come true.
const UNTIL: Duration = Duration::from_secs(120);

/// A host of the network by its name; none: the test's own process.
pub(crate) type Host = Option<&'static str>;

/// Waits until something holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let deadline = Instant::now() + UNTIL;
    while !holds()? {
        ensure!(Instant::now() < deadline, "it does not come true that {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Runs a function in the network of a host. The sockets that it opens stay there.
pub(crate) fn on_host<T: Send>(
    host: Host,
    act: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let Some(host) = host else { return act() };
    let network = File::open(network_of(host))?;
    std::thread::scope(|scope| {
        let acting = scope.spawn(move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            act()
        });
        acting.join().map_err(|_| anyhow!("a thread panicked"))?
    })
}

/// Connects from a host; none if the packets are dropped on their way.
///
/// # Errors
/// The connection is refused: nothing listens, so it says nothing about packets.
pub(crate) fn connected(from: Host, to: IpAddr, port: u16) -> anyhow::Result<Option<TcpStream>> {
    on_host(from, || match TcpStream::connect_timeout(&SocketAddr::new(to, port), ANSWERS_WITHIN) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_silence(&error) => Ok(None),
        Err(error) => Err(error.into()),
    })
}

/// Returns true if a host can connect.
pub(crate) fn connects(from: Host, to: IpAddr, port: u16) -> anyhow::Result<bool> {
    Ok(connected(from, to, port)?.is_some())
}

/// Returns true if a host can connect from one of its own ports.
pub(crate) fn connects_from(from: Host, own: u16, to: SocketAddrV4) -> anyhow::Result<bool> {
    on_host(from, || {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        set_socket_timeout(&socket, Timeout::Send, Some(ANSWERS_WITHIN))?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, own))?;
        match connect(&socket, &to).map_err(io::Error::from) {
            Ok(()) => Ok(true),
            Err(error) if is_silence(&error) || error.raw_os_error() == Some(IN_PROGRESS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

/// The error of a connection that is not there after its time.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

/// Returns true if a server of UDP hears a host.
pub(crate) fn is_heard(server: &UdpSocket, from: Host, to: IpAddr) -> anyhow::Result<bool> {
    server.set_read_timeout(Some(ANSWERS_WITHIN))?;
    let to = SocketAddr::new(to, server.local_addr()?.port());
    let sender = on_host(from, || {
        let any: IpAddr = if to.is_ipv4() { [0_u8; 4].into() } else { [0_u8; 16].into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.send_to(b"hello", to)?;
        Ok(socket.local_addr()?.port())
    })?;
    let mut buffer = [0_u8; 16];
    loop {
        match server.recv_from(&mut buffer) {
            Ok((_, heard)) if heard.port() == sender => return Ok(true),
            Ok(_) => {}
            Err(error) if is_silence(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns true if a host's ping is answered.
pub(crate) fn pings(from: Host, to: Ipv4Addr) -> anyhow::Result<bool> {
    let socket: OwnedFd = on_host(from, || {
        let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(ANSWERS_WITHIN))?;
        connect(&socket, &SocketAddrV4::new(to, 0))?;
        // A request (8, 0), its sum, and an id. The words of an Internet checksum add up to ones.
        let (request, id) = (0x0800_u16, 7_u16);
        let words = [request, !(request + id), id, 0];
        let packet: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        send(&socket, &packet, SendFlags::empty())?;
        Ok(socket)
    })?;
    let mut buffer = [0_u8; 128];
    loop {
        match recv(&socket, buffer.as_mut_slice(), RecvFlags::empty()).map_err(io::Error::from) {
            // Behind the header of IPv4, of 20 bytes, the kind of an answer is 0.
            Ok((length, _)) if length > 20 && buffer.get(20) == Some(&0) => return Ok(true),
            Ok(_) => {}
            Err(error) if is_silence(&error) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}
