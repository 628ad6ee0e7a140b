//! A runner that was taken over: a test takes the socket of a real one, and asks its keeper for what is not its own.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use periapt_host_api::{
    Digest, Incarnation, UnitName,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    commit::{EarlyEffect, EarlyItem, HookEffects, UnitCommit},
    logs::LogLevel,
    record::UnitRecord,
};
use periapt_tests::{Installation, Part, RunningProcess, packed, parts, signal};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde_json::{Value, json};

/// A text that only the other model holds.
const OTHERS: &str = "others-needle-5801";
/// A secret that only the other host's unit of the same model may read.
const SECRET: &str = "secret-needle-5802";
/// The longest wait for a keeper's message.
const WITHIN: Duration = Duration::from_secs(60);

/// The socket of a runner that was stopped.
struct TakenRunner {
    socket: UnixStream,
    calls: u64,
    /// All that the keeper sent.
    heard: String,
}

impl TakenRunner {
    /// Stops the only runner of an agent, and takes its socket.
    fn of(periapt: &Installation, agent: &RunningProcess) -> anyhow::Result<Self> {
        let parent = format!("PPid:\t{}\n", agent.id());
        let is_own =
            |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|s| s.contains(&parent));
        let found: Vec<u32> = parts(periapt)?
            .into_iter()
            .filter(|(pid, part)| *part == Part::Runner && is_own(*pid))
            .map(|(pid, _)| pid)
            .collect();
        let [runner] = *found.as_slice() else { bail!("one runner expected: {found:?}") };
        signal(runner, "STOP")?;
        let process = Pid::from_raw(i32::try_from(runner)?).context("a process id")?;
        let process = pidfd_open(process, PidfdFlags::empty())?;
        // A runner's socket is its standard input.
        let socket = pidfd_getfd(&process, 0, PidfdGetfdFlags::empty()).context("its socket")?;
        let socket = UnixStream::from(socket);
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(WITHIN))?;
        Ok(Self { socket, calls: 1 << 40, heard: String::new() })
    }

    fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        let text = message.to_string();
        self.socket.write_all(&u32::try_from(text.len())?.to_be_bytes())?;
        Ok(self.socket.write_all(text.as_bytes())?)
    }

    fn hear(&mut self) -> anyhow::Result<Value> {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).context("the keeper says nothing")?;
        let mut text = vec![0; u32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut text)?;
        let text = String::from_utf8(text)?;
        let message = serde_json::from_str(&text)?;
        self.heard.push_str(&text);
        Ok(message)
    }

    /// Makes a call, and returns its outcome.
    fn call(&mut self, call: Value) -> anyhow::Result<Value> {
        self.calls += 1;
        self.say(&json!({"call": {"id": self.calls, "call": call}}))?;
        loop {
            let message = self.hear()?;
            if message.pointer("/answer/id").and_then(Value::as_u64) == Some(self.calls) {
                return message.pointer("/answer/outcome").cloned().context("an outcome");
            }
        }
    }

    fn command(&mut self, command: &RunnerCommand) -> anyhow::Result<Value> {
        self.call(json!({"command": serde_json::to_value(command)?}))
    }
}

/// Returns all that a runner can ask for in the name of a unit.
fn commands_for(unit: &UnitName, incarnation: Incarnation) -> anyhow::Result<Vec<RunnerCommand>> {
    let effect = EarlyEffect::Log {
        level: LogLevel::Info,
        module: format!("unit.{unit}.juju-log"),
        message: "forged by a runner".to_owned(),
    };
    let item = EarlyItem { number: u64::MAX >> 12, at: "2026-01-01T00:00:00Z".parse()?, effect };
    let claim = LeaseClaim { unit: unit.clone(), application: unit.application().clone(), seconds: 60 };
    let commit = UnitCommit {
        unit: unit.clone(),
        seq: 0,
        incarnation,
        record: UnitRecord { seq: 1, ..UnitRecord::default() },
        effects: HookEffects::default(),
        transitions: Default::default(),
        leader_term: None,
        early: Vec::new(),
        journal: None,
        uncommitted_usage: Default::default(),
    };
    Ok(vec![
        RunnerCommand::Early { unit: unit.clone(), incarnation, items: vec![item] },
        RunnerCommand::Claim(claim),
        RunnerCommand::Commit(Box::new(commit)),
    ])
}

#[test]
fn a_runner_that_was_taken_over_reaches_its_own_units_alone() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    let (mut one, mut two) = (periapt.agent("one", [])?, periapt.agent("two", [])?);
    ensure!((one.first_line()?, two.first_line()?) == ("ready one".to_owned(), "ready two".to_owned()));
    periapt.ok(["add-model", "other"])?;
    let needle = format!("script=# {OTHERS}");
    periapt.deploy("mysql", ["stranger", "--to", "agent=two"])?;
    periapt.deploy("probe", ["hidden", "--to", "agent=two", "--config", &needle])?;
    periapt.wait_for(["model"])?;
    periapt.ok(["add-model", "test"])?;
    periapt.deploy("probe", ["mine", "--to", "agent=one"])?;
    periapt.deploy("probe", ["theirs", "--to", "agent=two"])?;
    let secret = periapt.ok(["add-secret", "token", &format!("token={SECRET}")])?;
    periapt.ok(["grant-secret", "token", "theirs"])?;
    periapt.wait_for(["model"])?;

    let mut runner = TakenRunner::of(&periapt, &one)?;
    let attached = runner.command(&RunnerCommand::Attach)?;
    let answer = attached.pointer("/answered/answer").cloned().context("attached")?;
    let RunnerAnswer::Attached { incarnation } = serde_json::from_value(answer)? else {
        bail!("not attached: {attached}");
    };
    let (mine, theirs): (UnitName, UnitName) = ("mine/0".parse()?, "theirs/0".parse()?);
    for command in commands_for(&theirs, incarnation)? {
        let outcome = runner.command(&command)?;
        ensure!(outcome.get("refused").is_some(), "{command:?}: {outcome}");
    }
    for command in commands_for(&mine, incarnation)?.iter().take(2) {
        let outcome = runner.command(command)?;
        ensure!(outcome.get("answered").is_some(), "its own unit's are carried out: {command:?}: {outcome}");
    }
    let id = secret.trim().trim_start_matches("secret:").to_owned();
    for unit in [&mine, &theirs] {
        let key = json!({"id": id, "revision": 1});
        let outcome = runner.call(json!({"secret": {"unit": unit, "key": key}}))?;
        ensure!(outcome.get("refused").is_some(), "{unit}: {outcome}");
    }
    let digest = Digest::of(&fs::read(packed("mysql", periapt.path())?)?);
    let outcome = runner.call(json!({"charm": digest}))?;
    ensure!(outcome.get("charm").is_none(), "the charm of another model: {outcome}");

    // The whole view, once more.
    runner.say(&json!("resync"))?;
    while !runner.hear()?.to_string().contains("mine/0") {}
    for text in [OTHERS, SECRET, "stranger", "hidden"] {
        ensure!(!runner.heard.contains(text), "{text} was told: {}", runner.heard);
    }
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    let forged: Vec<_> = log.lines().filter(|line| line.contains("forged by a runner")).collect();
    ensure!(forged.len() == 1 && forged.iter().all(|line| line.contains("mine/0")), "{forged:?}");
    Ok(())
}
