//! Restarts and upgrades of all controllers, one after the other, while clients send commands.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use periapt_host_api::{Digest, Timestamp};
use periapt_tests::{POLL_INTERVAL, is_alive, signal, stripped, varied};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    site::{HOSTS, Site, until},
    story::Story,
};

/// The longest time in which all controllers take a program.
const UPGRADED_WITHIN: &str = "5m";

/// Stops and starts all controllers in order, those that follow before the one that leads. Clients are answered while one is
/// away, and all are once it is back. Returns the longest time for which no client was answered.
pub(crate) fn restart_all(site: &Site, story: &Story) -> anyhow::Result<Duration> {
    longest_gap(story, || {
        let leader = site.known_leader()?;
        for number in (1..=HOSTS.len()).map(|after| (leader + after) % HOSTS.len()) {
            let host = site.host(number)?;
            let process = host.controller_process("local")?;
            signal(process, "TERM")?;
            until("a controller ends at SIGTERM", || Ok(!is_alive(process)))?;
            // Answers that were on their way do not count.
            let answered = story.answered();
            until("clients are answered", || Ok(story.answered() > answered + 3))?;
            site.another_leads(number)?;
            host.ok(["controller", "start", "local"])?;
            story.all_are_answered()?;
        }
        Ok(())
    })
}

/// Has all controllers and then all agents replace their program by another copy of it. Returns the longest time for which
/// no client was answered.
pub(crate) fn upgrade(site: &Site, story: &Story) -> anyhow::Result<Duration> {
    let directory = TempDir::new()?;
    let name = format!("upgraded-{}", Timestamp::now().as_millisecond());
    let program = varied(&stripped(directory.path())?, &name)?;
    let digest = Digest::of(&fs::read(&program)?).to_string();
    longest_gap(story, || {
        let follower = site.host((site.known_leader()? + 1) % HOSTS.len())?;
        let path = program.to_str().context("a path")?;
        follower.ok(["upgrade-controller", "--program", path, "--timeout", UPGRADED_WITHIN])?;
        until("all agents run the program", || {
            let agents = follower.json(["agents"])?;
            let agents = agents.as_array().context("a list of agents")?;
            Ok(agents.len() == site.agents.len() && agents.iter().all(|agent| runs(agent, &digest)))
        })?;
        story.all_are_answered()
    })
}

/// Returns true if an agent, as it is listed, runs a program and tries it no more.
fn runs(agent: &Value, digest: &str) -> bool {
    let Some(program) = agent.get("program") else { return false };
    let running = program.get("digest").and_then(Value::as_str);
    running == Some(digest) && program.get("trial").is_none()
}

/// Does some work, and returns the longest time meanwhile for which no client was answered.
fn longest_gap(story: &Story, work: impl FnOnce() -> anyhow::Result<()> + Send) -> anyhow::Result<Duration> {
    thread::scope(|scope| {
        let working = scope.spawn(work);
        let (mut seen, mut since, mut longest) = (story.answered(), Instant::now(), Duration::ZERO);
        while !working.is_finished() {
            let answered = story.answered();
            if answered != seen {
                (seen, since) = (answered, Instant::now());
            }
            longest = longest.max(since.elapsed());
            thread::sleep(POLL_INTERVAL);
        }
        working.join().map_err(|_| anyhow::anyhow!("the operator panicked"))??;
        Ok(longest)
    })
}
