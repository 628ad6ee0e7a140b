//! The end of kept answers.

use jiff::SignedDuration;
use periapt_host_api::{Timestamp, timing::ANSWERS_KEPT};

use crate::{
    entity::EntityKey,
    input::Environment,
    root::{Root, changes::Changes},
};

/// The most answers that one step of the worker forgets.
const STEP: usize = 90;

/// The seconds between the times at which answers are forgotten: the answers of a minute cost a few commits, not one
/// each.
const EVERY_SECONDS: i64 = 60;

/// Returns the time at which an answer may be forgotten.
fn end_of(at: Timestamp) -> Timestamp {
    let kept = SignedDuration::try_from(ANSWERS_KEPT).unwrap_or(SignedDuration::MAX);
    at.checked_add(kept).unwrap_or(Timestamp::MAX)
}

/// Returns the time at which the oldest answers are to be forgotten, or none if none is kept: the first full minute after
/// the end of the oldest one.
pub(crate) fn forget_at(root: &Root) -> Option<Timestamp> {
    let end = end_of(root.answer_times().next()?.0);
    let next = end.as_second().div_euclid(EVERY_SECONDS).saturating_add(1).saturating_mul(EVERY_SECONDS);
    Some(Timestamp::from_second(next).unwrap_or(Timestamp::MAX))
}

/// Forgets answers whose time is over, as many as one step may.
pub(crate) fn forget(root: &Root, env: &Environment) -> Changes {
    let mut changes = Changes::default();
    let over = root.answer_times().take_while(|(at, _)| end_of(*at) <= env.now);
    for (_, key) in over.take(STEP) {
        changes.puts.insert(EntityKey::Answer(key.clone()), None);
    }
    changes
}
