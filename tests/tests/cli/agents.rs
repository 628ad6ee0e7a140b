//! Several agents of one controller.

use anyhow::Context as _;
use periapt_tests::Installation;

#[test]
fn units_go_to_the_agent_that_is_named_and_run_there() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let controllers = periapt.json(["controllers"])?;
    let url = controllers["controllers"]["local"]["api-endpoints"][0].as_str().context("no URL")?;
    let run = ["agent", "run", "--controller", url, "--name", "second", "--data", "second"];
    let mut second = periapt.spawn(run)?;
    assert_eq!(second.first_line()?, "ready second");

    periapt.deploy("mysql", ["-n", "2", "--to", "agent=second,agent=first"])?;
    periapt.wait_for(["model"])?;
    let status = periapt.json(["status"])?;
    let hosts = [&status["machines"]["0"]["instance-id"], &status["machines"]["1"]["instance-id"]];
    assert_eq!(hosts, ["second", "first"], "{status}");
    let agents = periapt.json(["agents"])?;
    let names: Vec<_> = agents.as_array().into_iter().flatten().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["first", "second"]);

    // A unit beside another, on its machine.
    periapt.ok(["add-unit", "mysql", "--to", "1"])?;
    periapt.wait_for(["application", "mysql", "--units", "3"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"]["mysql"]["units"]["mysql/2"]["machine"], "1");
    assert_eq!(second.end("TERM")?, Some(0));
    Ok(())
}

#[test]
fn an_agent_that_cannot_reach_its_controller_waits_and_stops_when_told_to() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    // Bound and never listened on by a controller: whoever connects gets no answer.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", nobody.local_addr()?);
    let agent = periapt.spawn(["agent", "run", "--controller", &url, "--name", "lone", "--data", "lone"])?;
    // It has asked: so it is running, and handles signals.
    let (_connection, _) = nobody.accept()?;
    assert_eq!(agent.end("TERM")?, Some(0));
    Ok(())
}
