//! A hook tool as a process: it sends its name and arguments over a socket, and prints the answer.
//!
//! The shell script calls it under each tool's name. The program is as small as possible, so that the benchmark
//! measures the call and not the tool.

use std::{
    env,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    process::ExitCode,
};

fn main() -> ExitCode {
    // Without the socket, the exit code is the only way to report the error.
    run().unwrap_or(ExitCode::from(111))
}

fn run() -> io::Result<ExitCode> {
    let mut socket = UnixStream::connect(env::var_os("HOOK_SOCKET").unwrap_or_default())?;
    let mut request = Vec::new();
    for word in env::args_os() {
        request.extend(word.as_encoded_bytes());
        request.push(0);
    }
    socket.write_all(&request)?;
    socket.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    let Some((code, printed)) = answer.split_first() else { return Ok(ExitCode::FAILURE) };
    io::stdout().write_all(printed)?;
    Ok(ExitCode::from(*code))
}
