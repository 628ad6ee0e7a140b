//! Constraints on a command line.

use periapt_host_api::constraints::Constraints;

use crate::{
    context::Context,
    error::{Failure, Result},
};

/// Parses constraints.
pub(crate) fn read(texts: &[String]) -> Result<Constraints> {
    Constraints::parse(texts.iter().map(String::as_str)).map_err(|error| {
        Failure::new(error.to_string())
            .with_hint("cores=COUNT, mem=SIZE, tags=TAG,^TAG and zones=ZONE,... are supported")
    })
}

/// Prints in one line which constraints are stored without effect, and why.
pub(crate) fn tell_of_kept(context: &Context, constraints: &Constraints) {
    let told = constraints.without_effect();
    if !told.is_empty() {
        context.say(format_args!(
            "constraints that no sandbox can meet are stored without effect: {}",
            told.join(", ")
        ));
    }
}
