//! `resource-get`

use super::{Output, Tool, call::Call};
use crate::{CallError, lease::Interruption};

pub(super) const RESOURCE_GET: Tool = Tool {
    name: "resource-get",
    arguments: "<resource name>",
    summary: "Print the path of the file of a resource, which is fetched first if it is not at hand.",
    flags: &[],
    run: resource_get,
};

/// Prints the path without a line break, because shell scripts substitute the output.
fn resource_get(call: Call<'_>) -> Result<Output, Interruption> {
    let missing = || CallError::invalid("missing required resource name");
    let name = call.arguments.first().copied().filter(|name| !name.is_empty()).ok_or_else(missing)?;
    let [_] = call.at_most()?;
    Ok(call.run.resource(name)?.path.into())
}
