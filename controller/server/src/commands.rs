//! The submission of commands to the writer.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Refusal, trace::TraceContext};
use periapt_model::{Input, Output};

use crate::writer::{CommandAnswer, Job, Queue, QueueKey, Sender};

/// A handle to submit commands to the writer. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Commands {
    queue: Arc<Queue<Job>>,
}

impl Commands {
    pub(crate) fn new(queue: Arc<Queue<Job>>) -> Self {
        Self { queue }
    }

    /// Submits commands to be evaluated in order, and returns all results once they are durable. Each input may name the
    /// span that it comes from. `bytes` is the size of the request. Refuses all of them if the queue has no room.
    pub(crate) async fn submit(
        &self,
        key: QueueKey,
        sender: impl Into<Sender>,
        inputs: Vec<(Input, Option<TraceContext>)>,
        bytes: usize,
    ) -> Result<Vec<CommandAnswer>, Refusal> {
        let sender = sender.into();
        let (mut jobs, mut answers) = (Vec::with_capacity(inputs.len()), Vec::with_capacity(inputs.len()));
        for (input, cause) in inputs {
            let (job, receiver) = Job::new(sender.clone(), input, cause.as_ref());
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

    /// Submits one command.
    pub(crate) async fn submit_one(
        &self,
        key: QueueKey,
        sender: impl Into<Sender>,
        input: Input,
        bytes: usize,
    ) -> Result<(Output, periapt_host_api::Revision), Refusal> {
        let answered = self.submit(key, sender, vec![(input, None)], bytes).await?;
        let Some(CommandAnswer { result, revision }) = answered.into_iter().next() else {
            return Err(Refusal::new(ErrorCode::Internal, "one command has one result"));
        };
        Ok((result?, revision))
    }
}

/// Returns the error for a writer that ended before its answer. It is unknown if the command is durable, so the code
/// is not `try-again`: clients would repeat the request.
fn stopping() -> Refusal {
    let message = "the controller is shutting down; whether the request was carried out is not known";
    Refusal::new(ErrorCode::StorageUnavailable, message)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        ModelName, UserName,
        command::{Caller, ControllerCommand},
    };

    use super::*;

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
        assert_eq!(refusal.code, ErrorCode::StorageUnavailable);
        assert!(refusal.message.contains("whether the request was carried out is not known"), "{refusal}");
    }
}
