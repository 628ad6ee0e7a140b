//! A dialogue with a command in a container, through a controller that follows.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
};

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use periapt_client::ExecSession;
use periapt_host_api::exec_session::{ExecSessionOutput, ExecSessionRequest};
use periapt_tests::Installation;
use serde_json::Value;

use crate::{
    hooks::on_socket,
    site::{Site, until},
};

/// The words of a dialogue with the container of the one unit.
const EXEC: [&str; 6] = ["exec", "-u", "probe/0", "--container", "web", "-i"];

/// Runs a command by a host's controller, which passes dialogues on to no other one. Returns the command's exit code.
async fn code_by(host: &Installation) -> anyhow::Result<i32> {
    let command = ["sh", "-c", "exit 9"].map(str::to_owned).to_vec();
    let request = ExecSessionRequest { container: "web".parse()?, command, terminal: None };
    let begun = on_socket(host)?.exec_session(&"talk".parse()?, &"probe/0".parse()?, request).await?;
    let ExecSession { input: _input, mut output } = begun;
    while let Some(line) = output.next().await {
        if let ExecSessionOutput::Exit(code) = line? {
            return Ok(code);
        }
    }
    anyhow::bail!("the dialogue ended without an exit code")
}

/// Returns the ends of the dialogues that were begun, as the audit log of a host's controller has them.
fn ends(log: &Value) -> Vec<&str> {
    let requests = log.as_array().into_iter().flatten().filter_map(|entry| entry.get("request"));
    let ended = requests.filter(|request| request.get("act").is_some_and(|act| act == "end-exec-session"));
    let subjects = ended.filter_map(|request| request.get("subject")?.as_str());
    subjects.filter_map(|subject| Some(subject.rsplit_once(", ")?.1)).collect()
}

#[test]
fn a_dialogue_goes_through_a_controller_that_follows() -> anyhow::Result<()> {
    let site = Site::of_three(&["--no-agent"])?;
    let second = site.host(1)?;
    until("the first one leads", || Ok(site.leader(1)? == Some(0)))?;
    second.ok(["add-model", "talk"])?;
    let workloads = ["--workloads", "plain", "--i-know-that-nothing-is-isolated"];
    // The agent stays with the controller that it has joined.
    let mut agent = second.agent("worker", workloads)?;
    assert_eq!(agent.first_line()?, "ready worker");
    second.deploy("probe", [])?;
    let fed = |words: &[&str], input: Stdio| {
        let mut command = second.command(EXEC);
        command.args(words).stdin(input);
        Installation::finished(command)
    };
    until("the container runs", || Ok(fed(&["--", "true"], Stdio::null())?.code == Some(0)))?;

    let given = second.path().join("given");
    let text = "0123456789abcdef".repeat(1 << 16);
    std::fs::write(&given, &text)?;
    let copied = fed(&["--", "sh", "-c", "cat; exit 3"], File::open(&given)?.into())?;
    assert_eq!(copied.code, Some(3), "{}", copied.stderr);
    ensure!(copied.stdout == text, "{} bytes have come back", copied.stdout.len());

    // Each line is answered before the next one is sent.
    let mut command = second.command(EXEC);
    command.args(["--", "sh", "-c", "while read line; do echo got $line; done; exit 4"]);
    let mut dialogue = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = dialogue.stdin.take().context("an input")?;
    let mut output = BufReader::new(dialogue.stdout.take().context("an output")?);
    for word in ["one", "two"] {
        writeln!(input, "{word}")?;
        let mut line = String::new();
        output.read_line(&mut line)?;
        assert_eq!(line, format!("got {word}\n"));
    }
    drop(input);
    assert_eq!(dialogue.wait()?.code(), Some(4));

    // It was this controller that served it, and it follows; the leading one has both ends in its audit log.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(code_by(second)).context("has the agent left the second controller?")?;
    assert_eq!(code, 9);
    ensure!(matches!(site.leader(1)?, Some(0 | 2)), "the second one leads by now");
    site.host(0)?.json_until(&["audit-log"], |log| {
        let ends = ends(log);
        ["exit code 3", "exit code 4", "exit code 9"].iter().all(|end| ends.contains(end))
    })?;
    Ok(())
}
