//! The core of one pod: a real supervisor on virtual time. Its processes and the answers to its probes are played as a
//! scenario or the seed says.

use std::{collections::BTreeMap, time::Duration};

use jiff::SignedDuration;
use periapt_host_api::Timestamp;
use periapt_pebble::{
    Exit, LogPushResult, PodAnswer, PodInput, PodOutput, PodRefusal, Probe, ProcessId, RequestId, Signal,
    Spawn, Supervisor,
};

use crate::{clock::Clock, random::RandomNumbers};

/// The life of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessLife {
    /// It runs until SIGTERM or SIGKILL ends it.
    #[default]
    Serves,
    /// It runs until SIGKILL ends it.
    IgnoresTerm,
    /// It ends by itself with an exit code after a time.
    Exits(i32, Duration),
    /// It cannot be started.
    Missing,
    /// The seed draws one of the others for each process.
    Drawn,
}

/// The answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProbeAnswer {
    /// The workload is well.
    #[default]
    Well,
    /// The workload answers with an error.
    Fails,
    /// The workload does not answer.
    Silent,
    /// The seed draws one of the others for each probe.
    Drawn,
}

/// The scenario of all pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodScenario {
    /// True if keepers start a pod for each container. Otherwise tests play the pods.
    pub(crate) has_cores: bool,
    /// The lives of processes by their programs.
    pub(crate) programs: BTreeMap<String, ProcessLife>,
    /// The answers to probes by their URL, or by host and port.
    pub(crate) probes: BTreeMap<String, ProbeAnswer>,
}

impl PodScenario {
    fn life(&self, program: &str, random: &mut RandomNumbers) -> ProcessLife {
        match self.programs.get(program).copied().unwrap_or_default() {
            ProcessLife::Drawn => match random.below(6) {
                0 => ProcessLife::Missing,
                1 => ProcessLife::IgnoresTerm,
                code @ (2 | 3) => {
                    let after = Duration::from_millis(random.number() % 20_000);
                    ProcessLife::Exits(i32::from(code == 3), after)
                }
                _ => ProcessLife::Serves,
            },
            life => life,
        }
    }

    /// Returns the answer to a probe; none if it is not answered.
    fn answer(&self, probe: &Probe, random: &mut RandomNumbers) -> Option<Result<(), String>> {
        let target = match probe {
            Probe::Http { url, .. } => url.clone(),
            Probe::Tcp { host, port } => format!("{host}:{port}"),
        };
        let answer = match self.probes.get(&target).copied().unwrap_or_default() {
            ProbeAnswer::Drawn => match random.below(3) {
                0 => ProbeAnswer::Well,
                1 => ProbeAnswer::Fails,
                _ => ProbeAnswer::Silent,
            },
            answer => answer,
        };
        match answer {
            ProbeAnswer::Fails => Some(Err("out of luck".to_owned())),
            ProbeAnswer::Silent => None,
            ProbeAnswer::Well | ProbeAnswer::Drawn => Some(Ok(())),
        }
    }
}

/// The surroundings of a step of a pod.
pub(crate) struct PodWorld<'a> {
    pub(crate) clock: Clock,
    pub(crate) scenario: &'a PodScenario,
    pub(crate) random: &'a mut RandomNumbers,
}

impl PodWorld<'_> {
    pub(super) fn now(&self) -> Duration {
        Duration::from_millis(self.clock.boot_ms())
    }

    /// Returns the date at a time that has passed.
    pub(super) fn date(&self, at: Duration) -> Timestamp {
        let ago = SignedDuration::try_from(self.now().saturating_sub(at)).unwrap_or(SignedDuration::ZERO);
        self.clock.now().checked_sub(ago).unwrap_or(Timestamp::MIN)
    }
}

/// A process of a pod.
#[derive(Debug, Clone)]
pub(super) struct Process {
    pub(super) spawn: Spawn,
    life: ProcessLife,
    /// The time at which it ends by itself, with its exit code.
    ends: Option<(Duration, i32)>,
}

/// A supervisor with its processes.
#[derive(Debug, Clone)]
pub(super) struct Core {
    pub(super) supervisor: Supervisor,
    pub(super) born: Duration,
    pub(super) processes: BTreeMap<ProcessId, Process>,
    /// The requests that a client has open, with their answers.
    pub(super) answers: BTreeMap<RequestId, Option<Result<PodAnswer, PodRefusal>>>,
}

impl Core {
    /// Creates a core that begins at a time.
    pub(super) fn new(supervisor: Supervisor, born: Duration) -> Self {
        Self { supervisor, born, processes: BTreeMap::new(), answers: BTreeMap::new() }
    }

    /// Returns the time of its next event.
    pub(super) fn due(&self) -> Option<Duration> {
        let wake = self.supervisor.next_wake().map(|wake| self.born.saturating_add(wake));
        self.processes.values().filter_map(|process| Some(process.ends?.0)).chain(wake).min()
    }

    /// Returns the next event of a time: a process that ends by itself, or time that has passed.
    pub(super) fn next_event(&mut self, at: Duration) -> PodInput {
        let ended = self.processes.iter().find_map(|(id, process)| {
            let (end, code) = process.ends?;
            (end <= at).then_some((*id, code))
        });
        match ended {
            Some((id, code)) => self.exit(id, code),
            None => PodInput::Tick,
        }
    }

    /// Removes a process that has ended, and returns the event.
    pub(super) fn exit(&mut self, process: ProcessId, code: i32) -> PodInput {
        self.processes.remove(&process);
        PodInput::Exited(process, Exit { code, tail: String::new() })
    }

    /// Carries out an order, and returns the event that follows at once.
    pub(super) fn perform(
        &mut self,
        order: PodOutput,
        at: Duration,
        world: &mut PodWorld<'_>,
    ) -> Option<PodInput> {
        match order {
            PodOutput::Respond(id, answer) => {
                self.answers.insert(id, Some(answer));
                None
            }
            PodOutput::Spawn(process, spawn) => Some(self.spawn(process, *spawn, at, world)),
            PodOutput::Signal(process, signal) => {
                let life = self.processes.get(&process)?.life;
                let ends =
                    signal == Signal::KILL || (signal == Signal::TERM && life != ProcessLife::IgnoresTerm);
                ends.then(|| self.exit(process, 128 + signal.number()))
            }
            PodOutput::Probe(probe, question, _) => {
                let answer = world.scenario.answer(&question, world.random)?;
                Some(PodInput::Probed(probe, answer))
            }
            PodOutput::Push(push, _) => Some(PodInput::Pushed(push, LogPushResult::Taken)),
            // The websockets of commands are no part of a core, and no operator reads a log here.
            PodOutput::Abandon(_)
            | PodOutput::Forget(_)
            | PodOutput::ServiceEnded(..)
            | PodOutput::LogTarget(..)
            | PodOutput::Notice(_)
            | PodOutput::Shutdown(_) => None,
        }
    }

    fn spawn(
        &mut self,
        process: ProcessId,
        spawn: Spawn,
        at: Duration,
        world: &mut PodWorld<'_>,
    ) -> PodInput {
        let program = spawn.command.first().map_or("", String::as_str);
        let life = world.scenario.life(program, world.random);
        let ends = match life {
            ProcessLife::Missing => {
                return PodInput::SpawnFailed(process, format!("{program}: no such file"));
            }
            ProcessLife::Exits(code, after) => Some((at.saturating_add(after), code)),
            ProcessLife::Serves | ProcessLife::IgnoresTerm | ProcessLife::Drawn => None,
        };
        self.processes.insert(process, Process { spawn, life, ends });
        PodInput::Spawned(process)
    }
}
