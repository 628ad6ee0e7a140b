//! Bulk calls: one result for each command, in the same order.

use periapt_host_api::{
    ErrorCode, Refusal,
    command::{CommandResult, CommandResults},
};
use periapt_model::{Input, Output, has_kept_answer};
use serde::Serialize;

use crate::{
    api::{body::Bulk, caller::RequestCaller, request::requested},
    state::Submission,
    writer::{QueueKey, Submitted},
};

/// Submits the valid commands to the writer, and puts their results in order.
pub(crate) async fn submit<C: Serialize, T>(
    submission: &Submission,
    key: QueueKey,
    who: &RequestCaller,
    bulk: Bulk<C>,
    input: impl Fn(C) -> Input,
    output: impl Fn(Output) -> Option<T>,
) -> Result<CommandResults<T>, Refusal> {
    let root = submission.durable.current().root.clone();
    let mut inputs = Vec::new();
    let mut pending = Vec::with_capacity(bulk.commands.len());
    let traces = bulk.traces.into_iter().chain(std::iter::repeat(None));
    let act = key.to_string();
    for (index, (command, cause)) in bulk.commands.into_iter().zip(traces).enumerate() {
        pending.push(command.and_then(|command| {
            let requested = requested(who, &submission.sealer.key, (&act, index), &command)?;
            let mut input = input(command);
            // Confidential data is encrypted here, before it goes any further. A command that was carried out before goes
            // no further than to its answer, and what it names may be gone.
            if !requested.as_ref().is_some_and(|requested| has_kept_answer(&root, &who.caller, requested)) {
                submission.sealer.seal(&root, &mut input)?;
            }
            inputs.push(Submitted { input, cause, command: requested });
            Ok(())
        }));
    }
    let mut answered = submission.commands.submit(key, who.sender(), inputs, bulk.bytes).await?.into_iter();
    let mut revision = None;
    let results = pending
        .into_iter()
        .map(|place| {
            place?;
            let one = answered.next().ok_or_else(odd)?;
            revision = revision.max(Some(one.revision));
            output(one.result?.output).ok_or_else(odd)
        })
        .map(CommandResult::from)
        .collect();
    Ok(CommandResults {
        results,
        revision: revision.unwrap_or_else(|| submission.durable.current().revision()),
    })
}

fn odd() -> Refusal {
    Refusal::new(ErrorCode::Internal, "the model answered something else than it was asked")
}
