//! The modes that a server and a command have in common.

use std::{fmt::Write as _, hint};

use wasip2::sockets::{
    instance_network::instance_network,
    network::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress},
    tcp_create_socket::create_tcp_socket,
};

/// Computes for ever.
pub(crate) fn compute() -> ! {
    loop {
        hint::spin_loop();
    }
}

/// Takes memory until there is none, and returns how many mebibytes it got.
pub(crate) fn take_memory() -> usize {
    let mut taken = Vec::new();
    while taken.len() < 4 << 10 {
        let mut block = Vec::new();
        if block.try_reserve_exact(1 << 20).is_err() {
            break;
        }
        block.resize(1 << 20, 1_u8);
        taken.push(hint::black_box(block));
    }
    taken.len()
}

/// Calls itself until the stack is full.
pub(crate) fn recurse(depth: u64) -> u64 {
    if depth == u64::MAX {
        return 0;
    }
    hint::black_box(depth).wrapping_add(recurse(hint::black_box(depth + 1)))
}

/// Writes lines for ever.
pub(crate) fn flood() -> ! {
    loop {
        println!("a line of a workload that says too much");
    }
}

/// Returns the arguments and the environment, a line each.
pub(crate) fn surroundings() -> String {
    let mut text = String::new();
    for argument in std::env::args() {
        let _ = writeln!(text, "{argument}");
    }
    let mut variables: Vec<_> = std::env::vars().collect();
    variables.sort();
    for (name, value) in variables {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

/// Tries each way out, and returns those that exist.
pub(crate) fn escapes() -> String {
    let mut found = String::new();
    for path in ["/etc/passwd", "/proc/self/environ", "../etc/passwd", "/data/../../etc/passwd", "/data/link"]
    {
        if std::fs::read(path).is_ok() {
            let _ = writeln!(found, "read {path}");
        }
    }
    for path in ["/new", "/tmp/new", "/data/new", "/data/file"] {
        if std::fs::write(path, "x").is_ok() {
            let _ = writeln!(found, "wrote {path}");
        }
    }
    if std::fs::create_dir("/data/directory").is_ok() || std::fs::remove_file("/data/file").is_ok() {
        let _ = writeln!(found, "changed /data");
    }
    let address = Ipv4SocketAddress { port: 1, address: (127, 0, 0, 1) };
    let connects = create_tcp_socket(IpAddressFamily::Ipv4).is_ok_and(|socket| {
        socket.start_connect(&instance_network(), IpSocketAddress::Ipv4(address)).is_ok()
    });
    if connects {
        let _ = writeln!(found, "made a connection");
    }
    found
}
