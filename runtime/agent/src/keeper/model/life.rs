//! One runner, from its start to its end.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use periapt_helper::RunnerPlaces;
use periapt_host_api::{
    Digest, Revision, Timestamp, UnitName, agent::RunnerAnswer, api::WatchPosition, timing::RUNNER_SILENCE,
    view::FrameLine,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{Ending, ModelKeeper};
use crate::{
    keeper::{
        calls::{About, Calls, Settled, incarnation},
        controller::Controller,
        process::Process,
    },
    protocol::{
        CALLS_OUTSTANDING, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Grant, Incoming, LinkError,
        Outgoing, ReadyCharm, ToKeeper, ToRunner, split,
    },
};

/// Lines of frames on their way to a runner. One that is this far behind gets its stream ended after the frame; it
/// resumes, merged into one frame, when there is room.
const FRAMES: usize = 32;

/// Messages on their way to a runner: frames, an answer to each call it may have open, grants and the last word.
const QUEUE: usize = FRAMES + CALLS_OUTSTANDING + 8;

/// How long a runner may take to end after it was told to.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// What wakes the keeper of a living runner.
enum Wake {
    Ended,
    Message(Result<Option<(ToKeeper, usize)>, LinkError>),
    Room(OwnedSemaphorePermit),
    Frame(Box<FrameLine>),
    Settled(Vec<Settled>),
    Grants,
    Silent,
}

/// A message, and its place among the frames.
type Queued = (ToRunner, Option<OwnedSemaphorePermit>);

/// What is kept of one runner while it lives.
struct Life {
    queue: mpsc::Sender<Queued>,
    grants: watch::Receiver<BTreeMap<UnitName, Grant>>,
    /// Whether the runner has attached: what the runner before it had under way cannot land any more, so a
    /// view from now on holds all that did.
    attached: bool,
    /// Where the last frame that changed something went to.
    changed_to: Option<Revision>,
    leaving: Option<String>,
    /// The charms whose code the runner has mapped: the next who asks is given the same memory.
    code: BTreeMap<Digest, ReadyCharm>,
}

/// Why a runner's life is over, before its process is gone.
enum Over {
    Ordered,
    Idle(Option<Timestamp>),
    Closed,
    Kill(String),
}

impl<C: Controller> ModelKeeper<C> {
    /// Starts a runner and serves it until it ends.
    pub(super) async fn live(&mut self) -> Ending {
        let places = RunnerPlaces {
            charms: self.shared.directories.charms(),
            storage: self.shared.directories.storage(&self.model),
        };
        let runner = match self.shared.launch.runner(&places) {
            Ok(runner) => runner,
            Err(error) => return Ending::Left { reason: format!("it could not be started: {error}") },
        };
        let (mut incoming, outgoing) = split(runner.socket, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
        let (queue, queued) = mpsc::channel(QUEUE);
        let mut writer = JoinSet::new();
        writer.spawn(write(queued, outgoing));
        // A new runner has nothing yet.
        self.watch.source_mut().forget();
        self.watch.close();
        let mut grants = self.leases.grants();
        grants.mark_unchanged();
        let mut life =
            Life { queue, grants, attached: false, changed_to: None, leaving: None, code: BTreeMap::new() };
        life.say(ToRunner::Start(Box::new(self.start())));
        let over = self.serve(&mut incoming, &mut life).await;
        self.finish(over, life, incoming, runner.process).await
    }

    async fn serve(&mut self, incoming: &mut Incoming<ToKeeper>, life: &mut Life) -> Over {
        let shared = Arc::clone(&self.shared);
        let mut calls = Calls::new(
            shared.controller.clone(),
            self.model,
            Arc::clone(&shared.charms),
            Arc::clone(&self.resources),
            self.wanted.clone(),
        );
        let frames = Arc::new(Semaphore::new(FRAMES));
        let mut room = Arc::clone(&frames).try_acquire_owned().ok();
        let mut heard_at = Instant::now();
        loop {
            // In this order: what a runner makes happen waits for what it cannot, and its silence counts only when
            // all that it said was heard, so that a keeper which was stopped for a while blames nobody.
            let wake = tokio::select! {
                biased;
                () = self.ended.cancelled() => Wake::Ended,
                settled = calls.next() => Wake::Settled(settled),
                Ok(()) = life.grants.changed() => Wake::Grants,
                Ok(permit) = Arc::clone(&frames).acquire_owned(), if room.is_none() => Wake::Room(permit),
                line = self.watch.next(), if life.attached && room.is_some() => Wake::Frame(Box::new(line)),
                message = incoming.next(), if calls.has_room() => Wake::Message(message),
                () = sleep_until(heard_at + RUNNER_SILENCE) => Wake::Silent,
            };
            match wake {
                Wake::Ended => return Over::Ordered,
                Wake::Silent => return Over::Kill("it hangs".to_owned()),
                // It died with messages unread; all that it wrote itself was read.
                Wake::Message(Err(LinkError::Socket(error)))
                    if error.kind() == std::io::ErrorKind::ConnectionReset =>
                {
                    return Over::Closed;
                }
                Wake::Message(Err(error)) => {
                    return Over::Kill(format!("its messages are unreadable: {error}"));
                }
                Wake::Message(Ok(None)) => return Over::Closed,
                Wake::Message(Ok(Some((ToKeeper::Call { id, call }, bytes)))) => {
                    heard_at = Instant::now();
                    if let Err(error) = calls.push(id, call, bytes) {
                        return Over::Kill(error.to_string());
                    }
                }
                Wake::Message(Ok(Some((ToKeeper::Idle { position, wake_at }, _)))) => {
                    heard_at = Instant::now();
                    if calls.is_empty() && self.may_rest(life, position) {
                        return Over::Idle(wake_at);
                    }
                }
                Wake::Message(Ok(Some((message, _)))) => {
                    heard_at = Instant::now();
                    self.told(message, life);
                }
                Wake::Room(permit) => room = Some(permit),
                Wake::Frame(line) => {
                    self.observe(&line);
                    if !line.is_heartbeat() {
                        life.changed_to = Some(line.to);
                    }
                    let whole = line.is_last();
                    life.pass(*line, room.take());
                    room = Arc::clone(&frames).try_acquire_owned().ok();
                    // Within a frame all that came of it would have to come again, and might never be whole.
                    if room.is_none() && whole {
                        // The connection's window is for those who read.
                        self.watch.close();
                    }
                }
                Wake::Settled(settled) => {
                    for call in settled {
                        self.settled(call, life);
                    }
                }
                Wake::Grants => {
                    let grants = life.grants.borrow_and_update().values().cloned().collect();
                    life.say(ToRunner::Grants(grants));
                }
            }
        }
    }

    /// Takes note of what a runner says about its hooks.
    fn told(&mut self, message: ToKeeper, life: &mut Life) {
        match message {
            ToKeeper::HookStarted { unit, operation } => {
                if self.leases.roster(|roster| roster.holds(&unit)) {
                    self.suspects.started(unit, operation);
                }
            }
            ToKeeper::HookEnded { unit, operation } => {
                self.suspects.ended(&unit, operation);
                self.tails.ended(&unit);
            }
            ToKeeper::Noted { unit, items } => {
                if self.leases.roster(|roster| roster.holds(&unit)) {
                    self.tails.noted(unit, items);
                }
            }
            ToKeeper::Released(charm) => {
                life.code.remove(&charm);
            }
            ToKeeper::Resync => {
                self.watch.source_mut().forget();
                self.watch.close();
            }
            ToKeeper::Ending { reason } => life.leaving = Some(reason),
            ToKeeper::Alive | ToKeeper::Call { .. } | ToKeeper::Idle { .. } => {}
        }
    }

    /// Notes what the keeper must know of an answer, and passes it on.
    fn settled(&mut self, call: Settled, life: &mut Life) {
        if let CallOutcome::Charm(ready) = &call.outcome {
            life.code.insert(ready.digest, ready.clone());
        }
        match (&call.about, &call.outcome) {
            (About::Attach, outcome) => {
                if let Some(incarnation) = incarnation(outcome) {
                    self.incarnation = Some(incarnation);
                    life.attached = true;
                }
            }
            (About::Early(unit, number), CallOutcome::Answered { .. } | CallOutcome::Refused(_)) => {
                self.tails.settled(unit, *number);
            }
            (About::Claim(unit), CallOutcome::Answered { answer, sent_at, .. }) => {
                if matches!(answer, RunnerAnswer::Granted { .. } | RunnerAnswer::Held { .. }) {
                    self.leases.answered(unit, answer, *sent_at);
                }
            }
            _ => {}
        }
        life.say(ToRunner::Answer { id: call.id, outcome: call.outcome });
    }

    /// Whether a runner that has nothing to do knows all that it was sent.
    fn may_rest(&self, life: &Life, position: WatchPosition) -> bool {
        let same_store = self.watch.source().position().is_some_and(|sent| sent.store == position.store);
        same_store
            && life.changed_to.is_some_and(|changed| position.revision >= changed)
            && self.suspects.in_flight() == 0
    }

    /// Sees a runner off.
    async fn finish(
        &mut self,
        over: Over,
        life: Life,
        mut incoming: Incoming<ToKeeper>,
        mut process: Box<dyn Process>,
    ) -> Ending {
        match over {
            Over::Ordered | Over::Idle(_) => {
                life.say(ToRunner::Exit);
                let end = async { while let Ok(Some(_)) = incoming.next().await {} };
                if timeout(ENDS_WITHIN, end).await.is_err() {
                    tracing::warn!(model = %self.model, "a runner does not end, and is killed");
                    process.kill();
                }
                process.gone().await;
                self.suspects.released();
                match over {
                    Over::Idle(wake_at) => Ending::Idle { wake_at },
                    _ => Ending::Ordered,
                }
            }
            Over::Closed => {
                let how = process.gone().await;
                match life.leaving {
                    Some(reason) => Ending::Left { reason },
                    None => Ending::Died { how },
                }
            }
            Over::Kill(how) => {
                process.kill();
                process.gone().await;
                Ending::Died { how }
            }
        }
    }
}

impl Life {
    /// Sends a message that always has its place.
    fn say(&self, message: ToRunner) {
        self.queue_up((message, None));
    }

    /// Sends a line of a frame, which keeps its place until it is written.
    fn pass(&self, line: FrameLine, room: Option<OwnedSemaphorePermit>) {
        self.queue_up((ToRunner::Frame(Box::new(line)), room));
    }

    fn queue_up(&self, message: Queued) {
        // Full: only grants can have no place of their own left, and the next round brings them again.
        // Closed: the runner is gone, as its socket is about to say.
        if let Err(error) = self.queue.try_send(message) {
            tracing::debug!(%error, "a message to a runner was dropped");
        }
    }
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
