//! A hook tool as a process: says its name and arguments over a socket, and prints what it is answered.
//!
//! It is what a hook that is a shell script calls, under the name of each tool; as small as such a program gets, so
//! that what is measured is the way and not the tool.

use std::{
    env,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::unix::net::UnixStream,
    process::ExitCode,
};

fn main() -> ExitCode {
    // Without the socket there is nobody to tell more than that.
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
