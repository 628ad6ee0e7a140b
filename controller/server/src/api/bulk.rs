//! Bulk calls: one result for each command, in the same order.

use periapt_host_api::{
    ErrorCode, Refusal,
    command::{CommandResult, CommandResults},
};
use periapt_model::{Input, Output};

use crate::{
    api::{body::Bulk, caller::RequestCaller},
    state::Submission,
    writer::QueueKey,
};

/// Submits the valid commands to the writer, and puts their results in order.
pub(crate) async fn submit<C, T>(
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
    for (command, trace) in bulk.commands.into_iter().zip(traces) {
        // Confidential data is encrypted here, before it goes any further.
        pending.push(command.and_then(|command| {
            let mut input = input(command);
            submission.sealer.seal(&root, &mut input)?;
            inputs.push((input, trace));
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
            output(one.result?).ok_or_else(odd)
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
