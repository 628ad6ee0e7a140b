//! Requests to the unit's workloads, by hand.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use periapt_sdk::{Context as _, PebbleExec, Result, Unit, WorkloadStream, info};

/// The bytes that each command is given.
const INPUT: usize = 400_000;

/// The most characters of a response's body that are logged.
const SHOWN: usize = 300;

/// Sends one HTTP request to the Pebble of a container or to a port, and logs the response, or that nobody listens.
pub(crate) fn ask(unit: &Unit, target: &str, method: &str, path: &str, body: &str) -> Result {
    let opened = match target.parse() {
        Ok(port) => unit.workload_port(port),
        Err(_) => unit.pebble(target).connect(),
    };
    match opened {
        Ok(stream) => {
            let response = exchange(stream, method, path, body)?;
            let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
            let status = head.split(' ').nth(1).unwrap_or_default();
            let shown: String = body.trim().chars().take(SHOWN).collect();
            info!("ask {target} {method} {path}: {status} {shown}");
        }
        Err(error) => info!("ask {target} {method} {path}: {error}"),
    }
    Ok(())
}

/// Writes the content of a resource into a file of a container.
pub(crate) fn push(unit: &Unit, container: &str, path: &str, resource: &str) -> Result {
    let content = std::fs::read(unit.resource(resource)?.path()).context("reading the resource")?;
    unit.pebble(container).push(path, content)
}

/// Runs a script in a container, with 400,000 times `a` as its input, and logs how it ended.
pub(crate) fn shell(unit: &Unit, container: &str, milliseconds: u64, script: &str) {
    let time = Duration::from_millis(milliseconds);
    let command = PebbleExec::new(["sh", "-c", script]).stdin(vec![b'a'; INPUT]).timeout(time);
    match unit.pebble(container).exec(&command) {
        Ok(output) => {
            let shown =
                String::from_utf8_lossy(output.stdout.get(..3).unwrap_or(&output.stdout)).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            info!("shell: code {}, {} bytes {shown:?}, {errors:?}", output.code, output.stdout.len());
        }
        Err(error) => {
            let kind = error.pebble().map(|error| error.kind.clone()).unwrap_or_default();
            info!("shell: {kind}: {error}");
        }
    }
}

fn exchange(mut stream: WorkloadStream, method: &str, path: &str, body: &str) -> Result<String> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).context("asking the workload")?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).context("reading the workload's answer")?;
    Ok(String::from_utf8_lossy(&response).into_owned())
}
