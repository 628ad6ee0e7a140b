//! The way of a command to the writer and back: its sender, its submission, its place in the queue, and its answer.

use std::sync::Arc;

use periapt_host_api::{
    ErrorCode, Refusal, Revision, command::Caller, secret::Sealed, trace::TraceContext, user::TokenScope,
};
use periapt_model::{Input, Origin, Output, RequestedCommand};
use periapt_telemetry::{
    context::{self, Variant},
    spans::{COMMAND, number},
};
use tokio::{sync::oneshot, time::Instant};
use tracing::{Span, field::Empty};

use super::queue::{Queue, QueueKey};
use crate::metrics::metrics;

/// A handle to submit commands to the writer. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Commands {
    queue: Arc<Queue<Job>>,
}

impl Commands {
    pub(crate) fn new(queue: Arc<Queue<Job>>) -> Self {
        Self { queue }
    }

    /// Submits commands to be evaluated in order, and returns all results once they are durable. `bytes` is the size of the
    /// request. Refuses all of them if the queue has no room.
    pub(crate) async fn submit(
        &self,
        key: QueueKey,
        sender: impl Into<Sender>,
        inputs: Vec<Submitted>,
        bytes: usize,
    ) -> Result<Vec<CommandAnswer>, Refusal> {
        let sender = sender.into();
        let (mut jobs, mut answers) = (Vec::with_capacity(inputs.len()), Vec::with_capacity(inputs.len()));
        for submitted in inputs {
            let (job, receiver) = Job::new(key, sender.clone(), submitted);
            jobs.push(job);
            answers.push(receiver);
        }
        self.queue.push(key, bytes, jobs)?;
        let mut answered = Vec::with_capacity(answers.len());
        for answer in answers {
            answered.push(answer.await.map_err(|_| stopping())?);
        }
        Ok(answered)
    }

    /// Queues commands that another controller passes on, each in its queue, at once: one batch takes them if it has room.
    /// `bytes` is the size of their request. Refuses a command that finds no room, or that comes as a refusal, in its place.
    pub(crate) fn queue_forwarded(
        &self,
        commands: Vec<Result<(QueueKey, Sender, Submitted), Refusal>>,
        bytes: usize,
    ) -> QueuedAnswers {
        let weight = bytes.div_ceil(commands.len().max(1));
        let (mut jobs, mut places) = (Vec::with_capacity(commands.len()), Vec::with_capacity(commands.len()));
        for command in commands {
            places.push(command.map(|(key, sender, submitted)| {
                let (job, receiver) = Job::new(key, sender, submitted);
                jobs.push((key, job));
                receiver
            }));
        }
        let mut pushed = self.queue.push_each(weight, jobs).into_iter();
        let queued = places.into_iter().map(|place| {
            let receiver = place?;
            match pushed.next() {
                Some(Err(refusal)) => Err(refusal),
                _ => Ok(receiver),
            }
        });
        QueuedAnswers(queued.collect())
    }

    /// Submits one command.
    pub(crate) async fn submit_one(
        &self,
        key: QueueKey,
        sender: impl Into<Sender>,
        input: impl Into<Submitted>,
        bytes: usize,
    ) -> Result<(Answered, Revision), Refusal> {
        let answered = self.submit(key, sender, vec![input.into()], bytes).await?;
        let Some(CommandAnswer { result, revision }) = answered.into_iter().next() else {
            return Err(Refusal::new(ErrorCode::Internal, "one command has one result"));
        };
        Ok((result?, revision))
    }
}

/// The answers to commands that are queued, in order, and the refusals of those that are not.
pub(crate) struct QueuedAnswers(Vec<Result<oneshot::Receiver<CommandAnswer>, Refusal>>);

impl QueuedAnswers {
    /// Waits for all answers.
    ///
    /// # Errors
    /// The writer ended before it answered a command: nothing is known of that one.
    pub(crate) async fn all(self) -> Result<Vec<CommandAnswer>, Refusal> {
        let mut answered = Vec::with_capacity(self.0.len());
        // From the last one on: once it is answered, so are most of the others, and the caller is woken once.
        for place in self.0.into_iter().rev() {
            answered.push(match place {
                Ok(receiver) => receiver.await.map_err(|_| stopping())?,
                Err(refusal) => CommandAnswer { result: Err(refusal), revision: Revision(0) },
            });
        }
        answered.reverse();
        Ok(answered)
    }
}

/// A command to submit.
pub(crate) struct Submitted {
    /// The command.
    pub(crate) input: Input,
    /// The span that the command comes from; none: the span in which it is submitted.
    pub(crate) cause: Option<TraceContext>,
    /// The command as it is known when its request is sent again; none: it is evaluated each time.
    pub(crate) command: Option<RequestedCommand>,
}

impl From<Input> for Submitted {
    fn from(input: Input) -> Self {
        Self { input, cause: None, command: None }
    }
}

/// The sender of a command: the caller, for a user's request its origin, which the audit log names, and the bounds of the
/// API token that proved the user.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) caller: Caller,
    pub(crate) origin: Option<Origin>,
    pub(crate) scope: Option<TokenScope>,
}

/// A sender whose commands are not audited: an agent, a runner, or the controller itself.
impl From<&Caller> for Sender {
    fn from(caller: &Caller) -> Self {
        Self { caller: caller.clone(), origin: None, scope: None }
    }
}

/// A command that waits for the writer.
pub(crate) struct Job {
    /// The queue.
    pub(crate) key: QueueKey,
    /// The caller, and the origin of a user's request.
    pub(crate) sender: Sender,
    /// The command.
    pub(crate) input: Input,
    /// The command as it is known when its request is sent again.
    pub(crate) command: Option<RequestedCommand>,
    /// The place for its answer.
    pub(crate) pending: Pending,
}

/// The answer that a caller waits for.
pub(crate) struct Pending {
    /// The caller may have gone.
    answer: oneshot::Sender<CommandAnswer>,
    since: Instant,
    /// The command's span, from the queue to the answer.
    span: Span,
    /// True if another controller may have carried out the command. It is sent again, and is known by its id.
    is_in_doubt: bool,
}

/// The result of one command, once it is durable.
#[derive(Debug)]
pub(crate) struct CommandAnswer {
    /// Its answer, or the reason why it did nothing.
    pub(crate) result: Result<Answered, Refusal>,
    /// The revision at which this can be read.
    pub(crate) revision: Revision,
}

/// The answer to a command that was carried out.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The command's output.
    pub(crate) output: Output,
    /// The sealed response of the request, if the command was carried out when its request was sent before.
    pub(crate) response: Option<Sealed>,
}

/// The end of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// The model took or refused it.
    Evaluated,
    /// The store did not write it.
    Failed,
}

impl Job {
    /// Makes a command's job. Its span is a child of the command's cause, or else of the span in which this is called.
    pub(crate) fn new(
        key: QueueKey,
        sender: Sender,
        submitted: Submitted,
    ) -> (Self, oneshot::Receiver<CommandAnswer>) {
        let Submitted { input, cause, command } = submitted;
        let (answer, receiver) = oneshot::channel();
        let span = periapt_telemetry::span!(
            COMMAND,
            command = %Variant(command_of(&input)),
            outcome = Empty,
            revision = Empty
        );
        if let Some(cause) = &cause
            && !span.is_disabled()
        {
            // The request that carries it stays known.
            let request = context::of(&Span::current());
            context::continue_from(&span, Some(cause));
            request.iter().for_each(|request| context::link(&span, request));
        }
        let pending = Pending { answer, since: Instant::now(), span, is_in_doubt: false };
        (Self { key, sender, input, command, pending }, receiver)
    }
}

impl Pending {
    /// Notes that another controller may have carried out the command. From now on no temporary refusal says that it had
    /// no effect.
    pub(crate) fn doubt(&mut self) {
        self.is_in_doubt = true;
    }

    /// Answers the command.
    pub(crate) fn answer(self, mut answered: CommandAnswer, outcome: Outcome) {
        if let Err(refusal) = &mut answered.result
            && self.is_in_doubt
            && refusal.code.is_temporary()
        {
            *refusal = unknown("another controller did not answer");
        }
        let outcome = match (outcome, &answered.result) {
            (Outcome::Failed, _) => "failed",
            (Outcome::Evaluated, Ok(_)) => "done",
            (Outcome::Evaluated, Err(_)) => "refused",
        };
        metrics().commands.took(&[outcome], self.since.elapsed());
        self.span.record("outcome", outcome).record("revision", number(answered.revision.0));
        // The caller may have gone; the state says what the command did.
        let _ = self.answer.send(answered);
    }

    /// Returns the command's place in its trace; none if it is not recorded.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        context::of(&self.span)
    }

    /// Returns the command's span.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }
}

/// Returns the value whose variant names the command.
fn command_of(input: &Input) -> &dyn std::fmt::Debug {
    match input {
        Input::Controller(command) => command,
        Input::Model(_, command) => command,
        Input::Identity(command) => command,
        Input::Runner(_, command) => command,
        Input::Worker(command) => command,
        Input::UploadCharm(_)
        | Input::UploadResource(_)
        | Input::Backup { .. }
        | Input::Register(..)
        | Input::Audit(_)
        | Input::Join { .. } => input,
    }
}

/// Returns the error for a writer that ended before its answer. It is unknown if the command is durable, so the code
/// is not `try-again`: clients would repeat a request without an id.
fn stopping() -> Refusal {
    unknown("the controller is shutting down")
}

/// Returns the refusal of a command that may have been carried out.
pub(crate) fn unknown(reason: &str) -> Refusal {
    let message = format!("{reason}; whether the request was carried out is not known");
    Refusal::new(ErrorCode::OutcomeUnknown, message)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ModelName, UserName, command::ControllerCommand};

    use super::*;

    fn add_model(name: &str) -> (QueueKey, Sender, Submitted) {
        let input = Input::Controller(ControllerCommand::add_model(ModelName::new(name).unwrap()));
        let caller = Caller::User(UserName::new("admin").unwrap());
        (QueueKey::Controller, Sender::from(&caller), input.into())
    }

    #[tokio::test]
    async fn commands_of_another_controller_wait_together_and_a_refused_one_stops_no_other() {
        let queue = Arc::new(Queue::default());
        let commands = Commands::new(Arc::clone(&queue));
        let nonsense = Err(Refusal::bad_request("no sense"));
        let forwarded = vec![Ok(add_model("a")), nonsense, Ok(add_model("b"))];
        let answers = commands.queue_forwarded(forwarded, 3_000);
        let (jobs, weight) = queue.take_weighed(1 << 20, 99).await;
        assert_eq!((jobs.len(), weight), (2, 2_000));
        for (revision, job) in (7..).zip(jobs) {
            let answer = Answered { output: Output::Done, response: None };
            let answer = CommandAnswer { result: Ok(answer), revision: Revision(revision) };
            job.pending.answer(answer, Outcome::Evaluated);
        }
        let answers = answers.all().await.unwrap();
        let told: Vec<_> = answers.iter().map(|answer| (answer.result.is_ok(), answer.revision.0)).collect();
        assert_eq!(told, [(true, 7), (false, 0), (true, 8)]);

        let answers = commands.queue_forwarded(vec![Ok(add_model("c")), Ok(add_model("d"))], 1);
        drop(queue.take(1 << 20, 99).await);
        assert_eq!(answers.all().await.unwrap_err().code, ErrorCode::OutcomeUnknown);
    }

    #[tokio::test]
    async fn a_command_whose_writer_ends_before_it_answers_is_not_refused_as_one_to_send_again() {
        let queue = Arc::new(Queue::default());
        let commands = Commands::new(Arc::clone(&queue));
        let input = Input::Controller(ControllerCommand::add_model(ModelName::new("m").unwrap()));
        let caller = Caller::User(UserName::new("admin").unwrap());
        let submitted = commands.submit_one(QueueKey::Controller, &caller, input, 1);
        // The writer takes the command, and ends.
        let (answer, ()) = tokio::join!(submitted, async { drop(queue.take(1 << 20, 1).await) });
        let refusal = answer.unwrap_err();
        assert_eq!(refusal.code, ErrorCode::OutcomeUnknown);
        assert!(refusal.message.contains("whether the request was carried out is not known"), "{refusal}");
    }
}
