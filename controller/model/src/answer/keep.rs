//! The answers that are kept: looked up before a command is evaluated, and written with its changes.

use periapt_host_api::{ErrorCode, Refusal, command::Caller};

use super::entity::{AnswerKey, KeptAnswer, KeptOutput};
use crate::{
    entity::EntityKey,
    input::{Environment, Output, RequestedCommand},
    root::{Root, changes::Changes},
};

/// The most answers that are kept for one user: those of two of the largest requests. A user cannot fill the store.
pub(crate) const MAX_KEPT_ANSWERS: usize = 2_048;

/// The most bytes of answers that are kept for one user.
const MAX_KEPT_BYTES: usize = 2 << 20;

/// The most bytes of one kept answer. No command has an answer of half of this.
const MAX_ANSWER_BYTES: usize = 256 << 10;

/// The most answers that make room for a new one. A large answer after many small ones leaves a user above the bound in
/// bytes for a while: each further command makes room, too.
const MAX_REPLACED: usize = 32;

/// Returns the answer to a command that was carried out when its request was sent before, or none.
///
/// # Errors
/// The request's id was used for another command.
pub(crate) fn kept_answer<'a>(
    root: &'a Root,
    caller: &Caller,
    command: &RequestedCommand,
) -> Result<Option<&'a KeptAnswer>, Refusal> {
    let Caller::User(name) = caller else { return Ok(None) };
    let key = AnswerKey { user: name.clone(), request: command.request, index: command.index };
    let known = root.answer(&key).zip(root.user(name));
    let Some((kept, _)) = known.filter(|(kept, user)| kept.user_uuid == user.uuid) else { return Ok(None) };
    if kept.command != command.digest {
        let text = format!(
            "request id {} was used for another command before: each request needs an id of its own",
            command.request
        );
        return Err(Refusal::bad_request(text));
    }
    Ok(Some(kept))
}

/// Returns true if the answer to a command is kept: the command is not evaluated again.
pub fn has_kept_answer(root: &Root, caller: &Caller, command: &RequestedCommand) -> bool {
    kept_answer(root, caller, command).is_ok_and(|kept| kept.is_some())
}

/// Returns the changes that keep the answer to a user's command, and forget the oldest ones of the user that are too
/// many.
///
/// # Errors
/// The answer is too large to be kept.
pub(crate) fn keep_answer(
    root: &Root,
    caller: &Caller,
    command: &RequestedCommand,
    output: &Output,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let mut changes = Changes::default();
    let Caller::User(name) = caller else { return Ok(changes) };
    let Some((user, output)) = root.user(name).zip(KeptOutput::of(output)) else { return Ok(changes) };
    let key = AnswerKey { user: name.clone(), request: command.request, index: command.index };
    let kept = KeptAnswer {
        key: key.clone(),
        user_uuid: user.uuid,
        command: command.digest,
        at: env.now,
        output,
        response: command.response.clone(),
    };
    let added = kept.weight();
    if added > MAX_ANSWER_BYTES {
        let text = format!(
            "the answer takes {added} bytes, and at most {MAX_ANSWER_BYTES} are kept for a request with an id: \
             send less at once"
        );
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    let mut sum = root.answers_of(name);
    sum.add(added);
    for old in root.oldest_answers(name).filter(|old| old.key != key).take(MAX_REPLACED) {
        if sum.count <= MAX_KEPT_ANSWERS && sum.bytes <= MAX_KEPT_BYTES {
            break;
        }
        sum.remove(old.weight());
        changes.puts.insert(EntityKey::Answer(old.key.clone()), None);
    }
    changes.puts.insert(EntityKey::Answer(key), Some(kept.into()));
    Ok(changes)
}
