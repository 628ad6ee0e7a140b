//! The calls of one runner, which the keeper forwards to the controller in bulk calls.

use std::{collections::BTreeSet, collections::VecDeque, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use periapt_host_api::{
    Digest, Incarnation, ModelUuid, Refusal, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    api::{MAX_COMMANDS, MAX_COMMANDS_BYTES},
    command::{CommandResult, Commands},
    resource::ResourceKey,
    secret::SecretKey,
    trace::TraceContext,
};
use tokio::{sync::watch, time::timeout};

use super::{
    charms::{CharmError, Charms},
    controller::{Controller, ControllerError},
    pods::PodStreams,
    resources::Resources,
};
use crate::{
    clock::BootTime,
    protocol::{CALLS_OUTSTANDING, Call, CallId, CallOutcome, HeldFile},
};

/// The most bulk calls of one runner in flight. Further calls collect into the next one meanwhile. All wait for the
/// same disk, so more bulk calls would only be smaller.
const BULKS: usize = 4;

/// The most bytes of calls that a keeper holds for one runner. At the limit it stops reading until calls are
/// answered.
const BYTES: usize = 32 << 20;

/// The time that a call waits for a charm's assignment: views and assignments are two streams.
const ASSIGNED_WITHIN: Duration = Duration::from_secs(10);

/// The charms that the model's units need.
pub(crate) type WantedCharms = watch::Receiver<BTreeSet<Digest>>;

/// An answered call.
pub(crate) struct Settled {
    pub(crate) id: CallId,
    pub(crate) outcome: CallOutcome,
    pub(crate) effect: AnswerEffect,
}

/// The change in the keeper's state that an answer makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerEffect {
    /// The runner attached.
    Attach,
    /// The controller has the early items up to this number.
    Early(UnitName, u64),
    /// The unit claimed leadership.
    Claim(UnitName),
    /// A unit's progress was to be committed. Without an answer the runner sends it again.
    Commit,
    /// No change.
    Other,
}

impl AnswerEffect {
    fn of(command: &RunnerCommand) -> Self {
        match command {
            RunnerCommand::Attach => Self::Attach,
            RunnerCommand::Early { unit, items, .. } => match items.last() {
                Some(last) => Self::Early(unit.clone(), last.number),
                None => Self::Other,
            },
            RunnerCommand::Claim(claim) => Self::Claim(claim.unit.clone()),
            RunnerCommand::Commit(_) => Self::Commit,
            RunnerCommand::Storage { .. }
            | RunnerCommand::Container { .. }
            | RunnerCommand::Workloads { .. } => Self::Other,
        }
    }
}

/// Finished calls.
enum Done {
    /// The calls of a bulk call, with their bytes.
    Bulk(Vec<Settled>, usize),
    One(Settled),
}

struct Waiting {
    id: CallId,
    command: RunnerCommand,
    trace: Option<TraceContext>,
    bytes: usize,
}

/// An error for a runner that makes too many concurrent calls, which a correct runner never does.
#[derive(Debug, thiserror::Error)]
#[error("more than {CALLS_OUTSTANDING} calls at a time")]
pub(crate) struct TooMany;

/// The calls of one runner, by their progress.
pub(crate) struct Calls<C> {
    controller: C,
    model: ModelUuid,
    charms: Arc<Charms<C>>,
    resources: Arc<Resources<C>>,
    wanted: WantedCharms,
    pods: PodStreams,
    waiting: VecDeque<Waiting>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    bulks: usize,
    outstanding: usize,
    bytes: usize,
}

impl<C: Controller> Calls<C> {
    /// Creates an empty set of calls.
    pub(crate) fn new(
        controller: C,
        model: ModelUuid,
        charms: Arc<Charms<C>>,
        resources: Arc<Resources<C>>,
        wanted: WantedCharms,
        pods: PodStreams,
    ) -> Self {
        Self {
            controller,
            model,
            charms,
            resources,
            wanted,
            pods,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            bulks: 0,
            outstanding: 0,
            bytes: 0,
        }
    }

    /// Adds a call, which may be a step of a trace, and whose message had this many bytes.
    pub(crate) fn push(
        &mut self,
        id: CallId,
        call: Call,
        trace: Option<TraceContext>,
        bytes: usize,
    ) -> Result<(), TooMany> {
        if self.outstanding >= CALLS_OUTSTANDING {
            return Err(TooMany);
        }
        self.outstanding += 1;
        match call {
            Call::Command(command) => {
                self.bytes = self.bytes.saturating_add(bytes);
                self.waiting.push_back(Waiting { id, command: *command, trace, bytes });
                self.start_bulk();
            }
            Call::Secret { unit, key } => {
                let (controller, model) = (self.controller.clone(), self.model);
                self.running.push(
                    async move {
                        let outcome = secret(&controller, model, &unit, &key).await;
                        Done::One(Settled { id, outcome, effect: AnswerEffect::Other })
                    }
                    .boxed(),
                );
            }
            Call::Resource { unit, key } => {
                let resources = Arc::clone(&self.resources);
                self.running.push(
                    async move {
                        let outcome = resource(&resources, &unit, &key).await;
                        Done::One(Settled { id, outcome, effect: AnswerEffect::Other })
                    }
                    .boxed(),
                );
            }
            Call::Connect { unit, target } => {
                let pods = self.pods.clone();
                self.running.push(
                    async move {
                        let outcome = match pods.open(&unit, &target).await {
                            Ok(stream) => CallOutcome::Stream(HeldFile::of(stream)),
                            Err(message) => CallOutcome::Away { message },
                        };
                        Done::One(Settled { id, outcome, effect: AnswerEffect::Other })
                    }
                    .boxed(),
                );
            }
            Call::Charm(digest) => {
                let (charms, wanted) = (Arc::clone(&self.charms), self.wanted.clone());
                self.running.push(
                    async move {
                        let outcome = charm(&charms, wanted, digest).await;
                        Done::One(Settled { id, outcome, effect: AnswerEffect::Other })
                    }
                    .boxed(),
                );
            }
        }
        Ok(())
    }

    /// Returns true if every call is answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.outstanding == 0
    }

    /// Returns true if there is room for another call.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < BYTES
    }

    /// Waits for the next answers, for ever if there are no calls. Cancellation loses no answer.
    pub(crate) async fn next(&mut self) -> Vec<Settled> {
        let Some(done) = self.running.next().await else { return std::future::pending().await };
        let settled = match done {
            Done::One(settled) => vec![settled],
            Done::Bulk(settled, bytes) => {
                self.bytes = self.bytes.saturating_sub(bytes);
                self.bulks = self.bulks.saturating_sub(1);
                self.start_bulk();
                settled
            }
        };
        self.outstanding = self.outstanding.saturating_sub(settled.len());
        settled
    }

    /// Sends the waiting calls unless too many bulk calls are in flight.
    fn start_bulk(&mut self) {
        if self.waiting.is_empty() || self.bulks >= BULKS {
            return;
        }
        self.bulks += 1;
        let (mut calls, mut commands, mut traces, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while let Some(next) = self.waiting.pop_front() {
            bytes += next.bytes;
            calls.push((next.id, AnswerEffect::of(&next.command)));
            commands.push(next.command);
            traces.push(next.trace);
            let following = self.waiting.front().map_or(0, |waiting| waiting.bytes);
            // A quarter of the limit is left for the JSON around the commands.
            if commands.len() >= MAX_COMMANDS || bytes + following > MAX_COMMANDS_BYTES / 4 * 3 {
                break;
            }
        }
        if traces.iter().all(Option::is_none) {
            traces.clear();
        }
        let commands = Commands { commands, traces };
        let (controller, model) = (self.controller.clone(), self.model);
        self.running
            .push(async move { Done::Bulk(bulk(&controller, model, calls, commands).await, bytes) }.boxed());
    }
}

async fn bulk<C: Controller>(
    controller: &C,
    model: ModelUuid,
    calls: Vec<(CallId, AnswerEffect)>,
    commands: Commands<RunnerCommand>,
) -> Vec<Settled> {
    let sent_at = BootTime::now();
    let answered = controller.commands(model, commands).await;
    let settled = |(id, effect), outcome| Settled { id, outcome, effect };
    match answered {
        Ok(answered) if answered.results.len() == calls.len() => {
            let revision = answered.revision;
            let outcomes = answered.results.into_iter().map(|result| match result {
                CommandResult::Ok(answer) => CallOutcome::Answered { answer, revision, sent_at },
                CommandResult::Error(refusal) => refused(refusal),
            });
            calls.into_iter().zip(outcomes).map(|(call, outcome)| settled(call, outcome)).collect()
        }
        Ok(_) => {
            let outcome = CallOutcome::Away { message: "an answer has too few results".to_owned() };
            calls.into_iter().map(|call| settled(call, outcome.clone())).collect()
        }
        Err(error) => {
            let outcome = match error {
                ControllerError::Refused(refusal) => refused(refusal),
                ControllerError::Away(message) | ControllerError::Unusable(message) => {
                    CallOutcome::Away { message }
                }
            };
            calls.into_iter().map(|call| settled(call, outcome.clone())).collect()
        }
    }
}

fn refused(refusal: Refusal) -> CallOutcome {
    match refusal.code.is_temporary() {
        true => CallOutcome::Away { message: refusal.message },
        false => CallOutcome::Refused(refusal),
    }
}

/// Fetches a secret from the controller, which checks the unit's permission.
async fn secret<C: Controller>(
    controller: &C,
    model: ModelUuid,
    unit: &UnitName,
    key: &SecretKey,
) -> CallOutcome {
    match controller.secret(model, unit, key).await {
        Ok(content) => CallOutcome::Secret(content),
        Err(ControllerError::Refused(refusal)) => refused(refusal),
        Err(ControllerError::Away(message) | ControllerError::Unusable(message)) => {
            CallOutcome::Away { message }
        }
    }
}

/// Returns a resource that this agent has for the model, or fetches it from the controller.
async fn resource<C: Controller>(
    resources: &Resources<C>,
    unit: &UnitName,
    key: &ResourceKey,
) -> CallOutcome {
    match resources.obtain(unit, key).await {
        Ok(file) => CallOutcome::Resource(HeldFile { file: Some(Arc::new(file)) }),
        Err(ControllerError::Refused(refusal)) => refused(refusal),
        Err(ControllerError::Away(message) | ControllerError::Unusable(message)) => {
            CallOutcome::Away { message }
        }
    }
}

/// Obtains a charm for a runner, which may only get the charms of its own model.
async fn charm<C: Controller>(charms: &Charms<C>, mut wanted: WantedCharms, digest: Digest) -> CallOutcome {
    let assigned =
        timeout(ASSIGNED_WITHIN, async { wanted.wait_for(|wanted| wanted.contains(&digest)).await.is_ok() });
    if assigned.await != Ok(true) {
        let message = format!("charm {} is not among those that this agent is to run", digest.short());
        return CallOutcome::Away { message };
    }
    match charms.obtain(digest).await {
        Ok(ready) => CallOutcome::Charm(ready),
        Err(CharmError::Charm(refusal)) => refused(refusal),
        Err(CharmError::Unreachable(message) | CharmError::Away(message)) => CallOutcome::Away { message },
    }
}

/// Returns the incarnation from the answer to an attach.
pub(crate) fn incarnation(outcome: &CallOutcome) -> Option<Incarnation> {
    match outcome {
        CallOutcome::Answered { answer: RunnerAnswer::Attached { incarnation }, .. } => Some(*incarnation),
        _ => None,
    }
}
