//! `--base`, which has no effect.

use crate::context::Context;

/// Prints that a given base has no effect.
pub(crate) fn say_of_base(context: &Context, base: Option<&str>) {
    if let Some(base) = base {
        context.say(format_args!(
            "base \"{base}\" has no effect: all charms run on wasi@0.2, whatever the host is"
        ));
    }
}
