//! The life of one runner, from start to end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use periapt_helper::RunnerPaths;
use periapt_host_api::{
    Digest, Revision, Timestamp, UnitName, agent::RunnerAnswer, api::WatchPosition, timing::RUNNER_SILENCE,
    view::FrameLine,
};
use periapt_telemetry::export;
use periapt_uniter::WorkloadsWord;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{Ending, ModelKeeper};
use crate::{
    keeper::{
        calls::{AnswerEffect, Calls, Settled, incarnation},
        controller::Controller,
        pods::ListeningPods,
        process::Process,
    },
    metrics::{self, PoolShare, metrics},
    protocol::{
        CALLS_OUTSTANDING, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Grant, Incoming, LinkError,
        Outgoing, ReadyCharm, ToKeeper, ToRunner, split,
    },
};

/// The most lines of frames on their way to a runner. The stream of a runner that is further behind ends after the
/// current frame. It resumes when there is room, with the missed changes merged into one frame.
const FRAMES: usize = 32;

/// The most messages on their way to a runner: frames, an answer to each possible call, grants, one word about
/// workloads and the last message.
const QUEUE: usize = FRAMES + CALLS_OUTSTANDING + 8;

/// The time for a runner to end on request.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// An event for the keeper of a living runner.
enum Wake {
    Ended,
    Message(Result<Option<(ToKeeper, usize)>, LinkError>),
    Room(OwnedSemaphorePermit),
    Frame(Box<FrameLine>),
    Settled(Vec<Settled>),
    Grants,
    Workloads(OwnedSemaphorePermit),
    Silent,
}

/// A message, with its permit if it is a line of a frame or a word about workloads.
type Queued = (ToRunner, Option<OwnedSemaphorePermit>);

/// The keeper's state of one living runner.
struct Life {
    queue: mpsc::Sender<Queued>,
    grants: watch::Receiver<BTreeMap<UnitName, Grant>>,
    pods: watch::Receiver<ListeningPods>,
    /// True once the runner has attached. No commit of an earlier runner can succeed any more, so a view from now
    /// on contains all of them.
    attached: bool,
    /// The revision of the last frame with a change.
    changed_to: Option<Revision>,
    leaving: Option<String>,
    /// The charms that the runner has mapped. The next request for one gets the same memory.
    code: BTreeMap<Digest, ReadyCharm>,
    /// The use of the runner's pool.
    pool: PoolShare,
}

/// The reason for ending a runner, before its process has ended.
enum RunnerStop {
    Ordered,
    Idle(Option<Timestamp>),
    Closed,
    Kill(String),
}

impl<C: Controller> ModelKeeper<C> {
    /// Starts a runner and serves it until it ends.
    pub(super) async fn live(&mut self) -> Ending {
        let paths = RunnerPaths {
            charms: self.shared.directories.charms(),
            storage: self.shared.directories.storage(&self.model),
        };
        let runner = match self.shared.launch.runner(&paths) {
            Ok(runner) => runner,
            Err(error) => return Ending::Left { reason: format!("it could not be started: {error}") },
        };
        let (mut incoming, outgoing) = split(runner.socket, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
        let (queue, queued) = mpsc::channel(QUEUE);
        let mut writer = JoinSet::new();
        writer.spawn(write(queued, outgoing));
        // A new runner has no view yet.
        self.watch.source_mut().forget();
        self.watch.close();
        let mut grants = self.leases.grants();
        grants.mark_unchanged();
        let mut pods = self.pods.listening();
        pods.mark_changed();
        let mut life = Life {
            queue,
            grants,
            pods,
            attached: false,
            changed_to: None,
            leaving: None,
            code: BTreeMap::new(),
            pool: PoolShare::default(),
        };
        life.say(ToRunner::Start(Box::new(self.start())));
        let over = self.serve(&mut incoming, &mut life).await;
        self.finish(over, life, incoming, runner.process).await
    }

    async fn serve(&mut self, incoming: &mut Incoming<ToKeeper>, life: &mut Life) -> RunnerStop {
        let shared = Arc::clone(&self.shared);
        let mut calls = Calls::new(
            shared.controller.clone(),
            self.model,
            Arc::clone(&shared.charms),
            Arc::clone(&self.resources),
            self.wanted.clone(),
            self.pods.streams(),
        );
        let frames = Arc::new(Semaphore::new(FRAMES));
        // One word about workloads is on its way at a time: later changes merge into the next one.
        let words = Arc::new(Semaphore::new(1));
        let mut room = Arc::clone(&frames).try_acquire_owned().ok();
        let mut heard_at = Instant::now();
        loop {
            // In this order, work that the runner causes comes after other work. The runner's silence counts only
            // after all its messages are read, so a keeper that was paused blames no runner.
            let wake = tokio::select! {
                biased;
                () = self.ended.cancelled() => Wake::Ended,
                settled = calls.next() => Wake::Settled(settled),
                Ok(()) = life.grants.changed() => Wake::Grants,
                Some(permit) = changed(&words, &mut life.pods) => Wake::Workloads(permit),
                Ok(permit) = Arc::clone(&frames).acquire_owned(), if room.is_none() => Wake::Room(permit),
                line = self.watch.next(), if life.attached && room.is_some() => Wake::Frame(Box::new(line)),
                message = incoming.next(), if calls.has_room() => Wake::Message(message),
                () = sleep_until(heard_at + RUNNER_SILENCE) => Wake::Silent,
            };
            match wake {
                Wake::Ended => return RunnerStop::Ordered,
                Wake::Silent => return RunnerStop::Kill("it hangs".to_owned()),
                // The runner died with unread messages. All its own messages are read.
                Wake::Message(Err(LinkError::Socket(error)))
                    if error.kind() == std::io::ErrorKind::ConnectionReset =>
                {
                    return RunnerStop::Closed;
                }
                Wake::Message(Err(error)) => {
                    return RunnerStop::Kill(format!("its messages are unreadable: {error}"));
                }
                Wake::Message(Ok(None)) => return RunnerStop::Closed,
                Wake::Message(Ok(Some((ToKeeper::Call { id, call, trace }, bytes)))) => {
                    heard_at = Instant::now();
                    if let Err(error) = calls.push(id, call, trace, bytes) {
                        return RunnerStop::Kill(error.to_string());
                    }
                }
                Wake::Message(Ok(Some((ToKeeper::Idle { position, wake_at, workloads }, _)))) => {
                    heard_at = Instant::now();
                    let knows_all = life.pods.borrow().are_all_known(workloads);
                    if calls.is_empty() && knows_all && self.may_rest(life, position) {
                        return RunnerStop::Idle(wake_at);
                    }
                    if !knows_all {
                        // The queue may have had no room for the last word.
                        life.pods.mark_changed();
                        self.workloads_told = workloads;
                    }
                }
                Wake::Message(Ok(Some((message, _)))) => {
                    heard_at = Instant::now();
                    self.handle_message(message, life);
                }
                Wake::Room(permit) => room = Some(permit),
                Wake::Frame(line) => {
                    self.observe(&line);
                    if !line.is_heartbeat() {
                        life.changed_to = Some(line.to);
                    }
                    let whole = line.is_last();
                    if whole && !line.is_heartbeat() {
                        metrics().frames.inc(&[]);
                    }
                    life.pass(*line, room.take());
                    room = Arc::clone(&frames).try_acquire_owned().ok();
                    // The stream stays open within a frame: an interrupted frame would have to come again as a
                    // whole.
                    if room.is_none() && whole {
                        // Closing frees the connection's window for other streams.
                        self.watch.close();
                    }
                }
                Wake::Settled(settled) => {
                    for call in settled {
                        self.settled(call, life);
                    }
                }
                Wake::Workloads(permit) => {
                    let before = self.workloads_told;
                    if let Some(word) = self.next_word(life)
                        && !life.queue_up((word, Some(permit)))
                    {
                        // The next word goes on from here. An idle runner says how much it knows.
                        self.workloads_told = before;
                        life.pods.mark_unchanged();
                    }
                }
                Wake::Grants => {
                    let grants = life.grants.borrow_and_update().values().cloned().collect();
                    life.say(ToRunner::Grants(grants));
                }
            }
        }
    }

    /// Returns the next word about workloads: the pods, and once they are known their notices.
    fn next_word(&mut self, life: &mut Life) -> Option<ToRunner> {
        let known = &mut self.workloads_told;
        let (word, is_last) = {
            let pods = life.pods.borrow_and_update();
            let word = match pods.next_word(known)? {
                WorkloadsWord::Pods(told) => ToRunner::Workloads(told),
                WorkloadsWord::Changed(told) => ToRunner::WorkloadsChanged(told),
                WorkloadsWord::Notices(told) => ToRunner::Notices(told),
            };
            (word, pods.are_all_known(*known))
        };
        if !is_last {
            life.pods.mark_changed();
        }
        Some(word)
    }

    /// Handles a runner's message about its hooks.
    fn handle_message(&mut self, message: ToKeeper, life: &mut Life) {
        match message {
            ToKeeper::HookStarted { unit, operation } => {
                if self.leases.local_units(|local_units| local_units.holds(&unit)) {
                    self.suspects.started(unit, operation);
                }
            }
            ToKeeper::HookEnded { unit, operation, figures } => {
                if let Some(figures) = figures {
                    metrics::ran(&figures);
                }
                self.suspects.ended(&unit, operation);
                self.unconfirmed.ended(&unit);
            }
            ToKeeper::Noted { unit, items } => {
                if self.leases.local_units(|local_units| local_units.holds(&unit)) {
                    self.unconfirmed.noted(unit, items);
                }
            }
            ToKeeper::Released(charm) => {
                life.code.remove(&charm);
            }
            ToKeeper::Resync => {
                self.watch.source_mut().forget();
                self.watch.close();
            }
            ToKeeper::Spans(records) => export::export_records(records),
            ToKeeper::Ending { reason } => life.leaving = Some(reason),
            ToKeeper::Alive(held) => life.pool.set(held),
            ToKeeper::Call { .. } | ToKeeper::Idle { .. } => {}
        }
    }

    /// Records the effects of an answer on the keeper's state, and passes it on.
    fn settled(&mut self, call: Settled, life: &mut Life) {
        if let CallOutcome::Charm(ready) = &call.outcome {
            life.code.insert(ready.digest, ready.clone());
        }
        match (&call.effect, &call.outcome) {
            (AnswerEffect::Attach, outcome) => {
                if let Some(incarnation) = incarnation(outcome) {
                    self.incarnation.send_replace(Some(incarnation));
                    life.attached = true;
                }
            }
            (AnswerEffect::Early(unit, number), CallOutcome::Answered { .. } | CallOutcome::Refused(_)) => {
                self.unconfirmed.settled(unit, *number);
            }
            (AnswerEffect::Claim(unit), CallOutcome::Answered { answer, sent_at, .. }) => {
                if matches!(answer, RunnerAnswer::Granted { .. } | RunnerAnswer::Held { .. }) {
                    self.leases.answered(unit, answer, *sent_at);
                }
            }
            (AnswerEffect::Commit, CallOutcome::Away { .. }) => metrics().retries.inc(&["commit"]),
            _ => {}
        }
        life.say(ToRunner::Answer { id: call.id, outcome: call.outcome });
    }

    /// Returns true if an idle runner has received all changes and has no hook in flight.
    fn may_rest(&self, life: &Life, position: WatchPosition) -> bool {
        let same_store = self.watch.source().position().is_some_and(|sent| sent.store == position.store);
        same_store
            && life.changed_to.is_some_and(|changed| position.revision >= changed)
            && self.suspects.in_flight() == 0
    }

    /// Waits for a runner's end, and kills it if needed.
    async fn finish(
        &mut self,
        over: RunnerStop,
        life: Life,
        mut incoming: Incoming<ToKeeper>,
        mut process: Box<dyn Process>,
    ) -> Ending {
        match over {
            RunnerStop::Ordered | RunnerStop::Idle(_) => {
                life.say(ToRunner::Exit);
                let end = async { while let Ok(Some(_)) = incoming.next().await {} };
                if timeout(ENDS_WITHIN, end).await.is_err() {
                    tracing::warn!(model = %self.model, "a runner does not end, and is killed");
                    process.kill();
                }
                process.gone().await;
                self.suspects.released();
                match over {
                    RunnerStop::Idle(wake_at) => Ending::Idle { wake_at },
                    _ => Ending::Ordered,
                }
            }
            RunnerStop::Closed => {
                let how = process.gone().await;
                match life.leaving {
                    Some(reason) => Ending::Left { reason },
                    None => Ending::Died { how },
                }
            }
            RunnerStop::Kill(how) => {
                process.kill();
                process.gone().await;
                Ending::Died { how }
            }
        }
    }
}

impl Life {
    /// Queues a message that always has room.
    fn say(&self, message: ToRunner) {
        self.queue_up((message, None));
    }

    /// Queues a line of a frame, which holds its permit until it is written.
    fn pass(&self, line: FrameLine, room: Option<OwnedSemaphorePermit>) {
        self.queue_up((ToRunner::Frame(Box::new(line)), room));
    }

    /// Queues a message, and returns false if there was no room.
    fn queue_up(&self, message: Queued) -> bool {
        // The queue is full only for grants, and the next round repeats them. The queue is closed if the runner is
        // gone, as its socket will report.
        let queued = self.queue.try_send(message);
        if let Err(error) = &queued {
            tracing::debug!(%error, "a message to a runner was dropped");
        }
        queued.is_ok()
    }
}

/// Waits for a change of the pods once the last word about them is written. Cancellation loses nothing.
async fn changed(
    words: &Arc<Semaphore>,
    pods: &mut watch::Receiver<ListeningPods>,
) -> Option<OwnedSemaphorePermit> {
    let permit = Arc::clone(words).acquire_owned().await.ok()?;
    pods.changed().await.ok()?;
    Some(permit)
}

async fn write(mut queued: mpsc::Receiver<Queued>, mut outgoing: Outgoing<ToRunner>) {
    while let Some((message, room)) = queued.recv().await {
        if let Err(error) = outgoing.send(&message).await {
            tracing::debug!(%error, "a runner cannot be written to");
            return;
        }
        drop(room);
    }
}
