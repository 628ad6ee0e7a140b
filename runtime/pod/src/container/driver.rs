//! The driver of processes in a container: it speaks to the container's init.

use std::{
    collections::BTreeSet,
    io,
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    time::{Duration, Instant},
};

use periapt_pebble::{ProcessId, Signal, Spawn, Stdio};
use rustix::process::{Pid, Signal as KernelSignal, WaitOptions, kill_process, waitpid};
use tokio::sync::mpsc::UnboundedSender;

use super::wire::{FromInit, NewProcess, ToInit, receive, send};
use crate::driver::{Driver, Streams};

/// The time in which the init starts a process. It waits for nothing but the kernel and the disk.
const SPAWN_TIME: Duration = Duration::from_secs(30);

/// The time in which the init ends all processes of the container.
const KILL_TIME: Duration = Duration::from_secs(10);

/// The exit code of processes that ended with the init.
const KILLED: i32 = 128 + 9;

/// The driver of processes in a container.
#[derive(Debug)]
pub(super) struct Namespaces {
    socket: UnixStream,
    init: Pid,
    reader: Option<UnixStream>,
    /// The socket on which the gate calls other units, until it is taken.
    calls: Option<OwnedFd>,
    /// The one that took it, which reads it for as long as this lives.
    calls_taken: Option<UnboundedSender<OwnedFd>>,
    answers: (Sender<Answer>, Receiver<Answer>),
    ends: (Sender<End>, Receiver<End>),
    running: BTreeSet<ProcessId>,
    lost: Option<String>,
    is_reaped: bool,
}

/// The answer to an order to start a process.
type Answer = (u64, Result<(), String>);

/// A process that has ended, with its exit code.
type End = (ProcessId, i32);

impl Namespaces {
    /// Creates the driver for an init that is this process's child. On `calls`, the container's gate calls other units.
    pub(super) fn new(socket: UnixStream, init: Pid, calls: Option<OwnedFd>) -> io::Result<Self> {
        let reader = Some(socket.try_clone()?);
        let (answers, ends) = (channel(), channel());
        Ok(Self {
            socket,
            init,
            reader,
            calls,
            calls_taken: None,
            answers,
            ends,
            running: BTreeSet::new(),
            lost: None,
            is_reaped: false,
        })
    }

    /// Asks the init for a process.
    fn ask(&self, new: NewProcess, streams: &Streams) -> Result<(), String> {
        let Streams { stdin, stdout, stderr, .. } = streams;
        let process = new.process;
        let sent = send(
            &self.socket,
            &ToInit::Spawn(Box::new(new)),
            &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()],
        );
        sent.map_err(|error| error.to_string())?;
        let until = Instant::now() + SPAWN_TIME;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.answers.1.recv_timeout(left) {
                Ok((of, answer)) if of == process => return answer,
                // The late answer to an order that was given up.
                Ok(_) => {}
                Err(_) => {
                    // The init may start it later, and reads this then.
                    let kill = KernelSignal::KILL.as_raw();
                    let _ = send(&self.socket, &ToInit::Signal(process, kill), &[]);
                    return Err("the container does not answer".to_owned());
                }
            }
        }
    }
}

impl Driver for Namespaces {
    fn call_by(&mut self, sockets: UnboundedSender<OwnedFd>) {
        if let Some(calls) = self.calls.take() {
            // Without a receiver, nobody serves calls.
            let _ = sockets.send(calls);
            self.calls_taken = Some(sockets);
        }
    }

    fn create(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wake_by(&mut self, wake: Box<dyn Fn() + Send>) {
        let Some(reader) = self.reader.take() else { return };
        let (answers, ends) = (self.answers.0.clone(), self.ends.0.clone());
        let read = move || {
            // It ends with the init. Neither queue grows without bound: each order has one answer and one end.
            while let Ok(Some((message, _))) = receive::<FromInit>(&reader) {
                let _ = match message {
                    FromInit::Spawned(process) => answers.send((process, Ok(()))).is_ok(),
                    FromInit::Refused(process, reason) => answers.send((process, Err(reason))).is_ok(),
                    FromInit::Exited(process, code) => ends.send((ProcessId(process), code)).is_ok(),
                    FromInit::Mounted | FromInit::Ready(_) | FromInit::Failed(_) => true,
                };
                wake();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("init".to_owned()).spawn(read) {
            self.lost = Some(format!("cannot hear the container: {error}"));
        }
    }

    fn root(&self) -> PathBuf {
        "/".into()
    }

    fn spawn(&mut self, process: ProcessId, spawn: &Spawn, streams: Streams) -> Result<(), String> {
        if let Some(reason) = &self.lost {
            return Err(reason.clone());
        }
        let new = NewProcess {
            process: process.0,
            command: spawn.command.clone(),
            environment: spawn.environment.clone(),
            working_dir: spawn.working_dir.clone(),
            user: spawn.account.user.clone(),
            user_id: spawn.account.user_id,
            group: spawn.account.group.clone(),
            group_id: spawn.account.group_id,
            is_service: spawn.stdio == Stdio::Log,
            is_terminal: streams.is_terminal,
        };
        self.ask(new, &streams)?;
        self.running.insert(process);
        Ok(())
    }

    fn signal(&mut self, process: ProcessId, signal: Signal) {
        let _ = send(&self.socket, &ToInit::Signal(process.0, signal.number()), &[]);
    }

    fn exits(&mut self) -> Vec<(ProcessId, i32)> {
        let mut ended: Vec<_> = self.ends.1.try_iter().collect();
        for (process, _) in &ended {
            self.running.remove(process);
        }
        if !self.is_reaped && !matches!(waitpid(Some(self.init), WaitOptions::NOHANG), Ok(None)) {
            self.is_reaped = true;
            self.lost.get_or_insert_with(|| "the container's init has ended".to_owned());
            ended.extend(std::mem::take(&mut self.running).into_iter().map(|process| (process, KILLED)));
        }
        ended
    }

    fn lost(&self) -> Option<String> {
        self.lost.clone()
    }

    fn kill(&mut self) {
        // The init ends all processes of the container, and itself once they are gone.
        let _ = self.socket.shutdown(Shutdown::Both);
        let until = Instant::now() + KILL_TIME;
        while !self.is_reaped && Instant::now() < until {
            self.is_reaped = !matches!(waitpid(Some(self.init), WaitOptions::NOHANG), Ok(None));
            std::thread::sleep(Duration::from_millis(2));
        }
        // The kernel ends one that hangs, with all others. Its number is its own until it is reaped.
        if !self.is_reaped {
            let _ = kill_process(self.init, KernelSignal::KILL);
        }
    }
}
