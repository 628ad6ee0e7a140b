//! The metrics, traces and logs of services and verbs.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_agent::metrics::TABLE;
use periapt_tests::{Installation, POLL_INTERVAL, RunningProcess};

/// The longest wait for a figure that follows what a test has seen already.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a second agent, and returns it with the address of its metrics.
fn with_metrics(periapt: &Installation) -> anyhow::Result<(RunningProcess, String)> {
    let mut agent = periapt.agent("second", ["--metrics-address", "127.0.0.1:0"])?;
    let line = agent.first_line()?;
    let address = line.strip_prefix("metrics http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let address = address.with_context(|| line.clone())?.to_owned();
    Ok((agent, address))
}

/// Returns the response to a GET request, head and body.
fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the metrics once one of their lines is this.
fn metrics_with(address: &str, line: &str) -> anyhow::Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let text = get(address, "/metrics")?;
        if text.lines().any(|one| one == line) {
            return Ok(text);
        }
        ensure!(Instant::now() < deadline, "{line} is not in\n{text}");
        thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn the_metrics_of_an_agent_have_each_row_of_the_table_and_count_the_hooks_that_ran() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let (agent, address) = with_metrics(&periapt)?;
    let before = metrics_with(&address, "periapt_agent_runners{state=\"running\"} 0")?;
    assert!(before.starts_with("HTTP/1.1 200 OK\r\n"), "{before}");
    assert!(
        before.contains("periapt_agent_hooks_total{event=\"install\",outcome=\"handled\"} 0\n"),
        "{before}"
    );
    periapt.deploy("mysql", ["--to", "agent=second"])?;
    periapt.wait_for(["model"])?;
    let text = metrics_with(&address, "periapt_agent_hooks_total{event=\"install\",outcome=\"handled\"} 1")?;
    for definition in TABLE {
        let typed = format!("# TYPE {} ", definition.name);
        assert!(text.contains(&typed), "{} is missing:\n{text}", definition.name);
    }
    let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    has("periapt_agent_hook_seconds_count{event=\"install\"} 1");
    has("periapt_agent_runners{state=\"running\"} 1");
    has("periapt_agent_compile_seconds_count{outcome=\"ok\"} 1");
    // Names of units, applications and models are in no label.
    assert!(!text.contains("mysql") && !text.contains("test"), "{text}");
    assert!(get(&address, "/")?.starts_with("HTTP/1.1 404 "));
    assert_eq!(agent.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn metrics_are_served_on_loopback_alone() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let run = ["agent", "run", "--controller", "https://127.0.0.1:1", "--name", "x", "--data", "x"];
    let error = periapt.refused(run.into_iter().chain(["--metrics-address", "0.0.0.0:0"]))?;
    assert!(error.contains("metrics are served on a loopback address, such as 127.0.0.1:0"), "{error}");
    Ok(())
}

#[test]
fn a_collector_that_never_answers_harms_neither_verbs_nor_services() -> anyhow::Result<()> {
    // It takes connections, and says nothing.
    let collector = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", collector.local_addr()?);
    let periapt = Installation::empty()?;
    let run = |words: &[&str]| {
        let mut command = periapt.command(words);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
        let done = Installation::finished(command)?;
        ensure!(done.code == Some(0), "{words:?}: {done:?}");
        Ok(done)
    };
    run(&["bootstrap", "local", "--agent-name", "first"])?;
    run(&["add-model", "test"])?;
    periapt.deploy("mysql", [])?;
    run(&["wait-for", "model", "--timeout", "90s"])?;
    run(&["status"])?;
    Ok(())
}

#[test]
fn an_endpoint_that_is_none_is_told_of_and_harms_no_verb() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let mut command = periapt.command(["controllers"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example");
    let done = Installation::finished(command)?;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stderr.contains("must be http://HOST:PORT"), "{done:?}");
    Ok(())
}

#[test]
fn a_service_logs_one_json_object_on_each_line_if_it_is_told_to() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let run = ["controller", "run", "--data", "store", "--listen", "127.0.0.1:0", "--log-format", "json"];
    let mut command = periapt.command(run);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let log = child.stderr.take().context("its log")?;
    let mut line = String::new();
    let read = BufReader::new(log).read_line(&mut line);
    child.kill()?;
    child.wait()?;
    read?;
    let entry: serde_json::Value = serde_json::from_str(&line).with_context(|| line.clone())?;
    assert!(entry["fields"]["message"].is_string() && entry["level"].is_string(), "{entry}");
    Ok(())
}
