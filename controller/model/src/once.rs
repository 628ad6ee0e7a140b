//! The evaluation of requests that may be sent again: a command of a request with an id is carried out once.

use periapt_host_api::{Refusal, command::Caller, secret::Sealed};

use crate::{
    answer::keep::{keep_answer, kept_answer},
    evaluate::evaluate,
    input::{Environment, Input, Output, RequestedCommand},
    root::{Root, changes::Changes},
};

/// A request that was not refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluated {
    /// The request is carried out by its changes.
    New {
        /// The changes of the request.
        changes: Changes,
        /// The changes that keep the answer. Both belong into one batch, and each alone into the bounds of a command.
        kept: Changes,
        /// The answer.
        output: Output,
    },
    /// The request was carried out when it was sent before. It changes nothing.
    Repeated {
        /// The answer that was given then.
        output: Output,
        /// The sealed response that was given then, if it was kept.
        response: Option<Sealed>,
    },
}

/// Evaluates one request against a state, as [`evaluate`] does. A `command` of a user is looked up first: if its answer
/// is kept, the answer is given again.
///
/// # Errors
/// The refusal of the request. A refusal is not kept: the request is evaluated when it is sent again.
pub fn evaluate_once(
    root: &Root,
    caller: &Caller,
    input: &Input,
    command: Option<&RequestedCommand>,
    env: &Environment,
) -> Result<Evaluated, Refusal> {
    let known = command.map(|command| kept_answer(root, caller, command)).transpose()?.flatten();
    if let Some(kept) = known {
        return Ok(Evaluated::Repeated { output: kept.output.output(), response: kept.response.clone() });
    }
    let (changes, output) = evaluate(root, caller, input, env)?;
    let kept = command.map(|command| keep_answer(root, caller, command, &output, env)).transpose()?;
    Ok(Evaluated::New { changes, kept: kept.unwrap_or_default(), output })
}
