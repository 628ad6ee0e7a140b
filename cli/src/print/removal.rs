//! The state of a removal.

use periapt_host_api::command::Answer;

use crate::context::Context;

/// Prints the state of a removal.
pub(crate) fn report(context: &Context, what: &str, answer: &Answer) {
    match answer {
        Answer::Removal { gone: true, .. } => context.say(format_args!("removed {what}")),
        Answer::Removal { gone: false, waits_for } if !waits_for.is_empty() => {
            context.say(format_args!("removing {what}, which waits for {}", waits_for.join(", ")));
        }
        _ => context.say(format_args!("removing {what}")),
    }
}

/// Prints the answer about one of several things.
pub(crate) fn report_one<T: ToString>(
    context: &Context,
    kind: &str,
    names: &[T],
    index: usize,
    answer: &Answer,
) {
    if let Some(name) = names.get(index) {
        report(context, &format!("{kind} {}", name.to_string()), answer);
    }
}
