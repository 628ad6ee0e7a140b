//! Several agents of one controller.

use std::{fs, path::Path};

use periapt_host_api::{
    Digest,
    agent::JoinText,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_tests::{Installation, signal};

#[test]
fn units_go_to_the_agent_that_is_named_and_run_there() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let mut second = periapt.agent("second", [])?;
    assert_eq!(second.first_line()?, "ready second");

    periapt.deploy("mysql", ["-n", "2", "--to", "agent=second,agent=first"])?;
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    let hosts = [&status["machines"]["0"]["instance-id"], &status["machines"]["1"]["instance-id"]];
    assert_eq!(hosts, ["second", "first"], "{status}");
    let agents = periapt.json(["agents"])?;
    let names: Vec<_> = agents.as_array().into_iter().flatten().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["first", "second"]);

    // A unit placed on another unit's machine.
    periapt.deploy("wordpress", ["--to", "1"])?;
    periapt.wait_for(["application", "wordpress", "--status", "blocked"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"]["wordpress"]["units"]["wordpress/0"]["machine"], "1");
    assert_eq!(status["machines"].as_object().map(serde_json::Map::len), Some(2), "{status}");
    assert_eq!(second.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn an_agent_and_a_controller_whose_file_was_replaced_start_processes_of_their_own_version()
-> anyhow::Result<()> {
    let periapt = Installation::replaced()?;
    // The controller's helper checks the charm; the agent compiles it and starts a runner for the model.
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let mut runners = 0;
    for pid in periapt.processes()? {
        let process = Path::new("/proc").join(pid.to_string());
        let words = String::from_utf8_lossy(&fs::read(process.join("cmdline"))?).replace('\0', " ");
        let file = fs::read_link(process.join("exe"))?;
        let (file, name) = (file.to_string_lossy().into_owned(), fs::read_to_string(process.join("comm"))?);
        assert!(file.ends_with("/periapt (deleted)"), "{words}: {file}");
        assert_eq!(name, "periapt\n", "{words}");
        runners += usize::from(words.contains(" agent runner "));
    }
    assert_eq!(runners, 1);
    Ok(())
}

#[test]
fn an_agent_that_cannot_reach_its_controller_waits_and_stops_when_told_to() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    // A bound listener that never answers: connections to it get no reply.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("https://{}", nobody.local_addr()?);
    // Any token and any authority: it never comes to show them.
    let (token, authority) = (Token::new(TokenKind::Join, [1; TOKEN_BYTES]), Digest::of(b"authority"));
    let mut command =
        periapt.command(["agent", "run", "--controller", &url, "--name", "lone", "--data", "lone"]);
    command.env("PERIAPT_AGENT_TOKEN", JoinText { token, authority }.reveal());
    let agent = periapt.spawned(command)?;
    // The agent has connected: it runs, and handles signals.
    let (_connection, _) = nobody.accept()?;
    assert_eq!(agent.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn an_agent_that_was_killed_is_seen_as_lost_and_goes_on_when_it_is_back() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    let hooks = periapt.json(["hooks", "mysql/0"])?;
    signal(periapt.agent_process("local")?, "KILL")?;
    periapt.wait_for(["unit", "mysql/0", "--status", "unknown", "--agent", "lost"])?;
    assert_eq!(periapt.json(["agents"])?[0]["alive"], false);

    periapt.ok(["controller", "start"])?;
    periapt.wait_for(["model"])?;
    assert_eq!(periapt.json(["hooks", "mysql/0"])?, hooks, "a restart alone runs no hook");
    periapt.ok(["config", "mysql", "max-connections=7"])?;
    periapt.ok(["add-unit", "mysql"])?;
    periapt.wait_for(["application", "mysql", "--units", "2"])
}

#[test]
fn a_unit_whose_agent_is_gone_is_removed_by_force() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["model"])?;
    signal(periapt.agent_process("local")?, "KILL")?;
    periapt.ok(["remove-unit", "mysql/0", "--no-prompt"])?;
    let error = periapt.refused(["wait-for", "unit", "mysql/0", "--gone", "--timeout", "3s"])?;
    assert!(error.contains("unit mysql/0 still exists, and waits for its agent"), "{error}");
    periapt.ok(["remove-unit", "mysql/0", "--no-prompt", "--force", "--max-wait", "0s"])?;
    periapt.wait_for(["unit", "mysql/0", "--gone"])
}
