//! `--base`, which counts for nothing.

use crate::context::Context;

/// Says what becomes of a base that was asked for.
pub(crate) fn say_of_base(context: &Context, base: Option<&str>) {
    if let Some(base) = base {
        context.say(format_args!(
            "base \"{base}\" counts for nothing: all charms run on wasi@0.2, whatever the host is"
        ));
    }
}
