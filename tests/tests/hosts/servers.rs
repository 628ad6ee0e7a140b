//! Servers of units, which are WebAssembly workloads and ask other servers.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::Context as _;
use periapt_tests::{Installation, packed_parts};

/// The answer of such a server to another one.
pub(crate) const ANSWERED: &str = "404 no such mode";

/// The time for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// Packs a charm whose units have a server on a port, and returns the path of its archive.
pub(crate) fn packed_server(periapt: &Installation, edition: &str, port: u16) -> anyhow::Result<String> {
    let parts = [("server.wasm", "hostile-workload")];
    let server = format!("x-periapt: {{workloads: {{server: {{component: server.wasm, http: {port}}}}}}}\n");
    let archive = packed_parts("probe", edition, periapt.path(), &parts, |text| format!("{text}{server}"))?;
    Ok(archive.to_str().context("a path")?.to_owned())
}

/// Lets a server ask another one, and returns what it tells of the answer.
pub(crate) fn asks(server: (&str, u16), authority: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
    write!(stream, "GET /ask?{authority} HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
