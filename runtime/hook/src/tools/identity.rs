//! `unit-get`, `application-version-set`

use super::{
    Output, Tool,
    call::{Call, OUTPUT, silent},
};
use crate::{CallError, lease::Interruption};

pub(super) const UNIT_GET: Tool = Tool {
    name: "unit-get",
    arguments: "<setting>",
    summary: "Print public-address or private-address.",
    flags: &[OUTPUT],
    run: unit_get,
};

pub(super) const APPLICATION_VERSION_SET: Tool = Tool {
    name: "application-version-set",
    arguments: "<new-version>",
    summary: "Specify which version of the application is deployed.",
    flags: &[],
    run: application_version_set,
};

fn unit_get(call: Call<'_>) -> Result<Output, Interruption> {
    let format = call.format()?;
    let [setting] = call.at_most()?;
    let address = match setting {
        Some("private-address") => call.run.private_address()?,
        Some("public-address") => call.run.public_address()?,
        Some(other) => return Err(CallError::invalid(format!("unknown setting {other:?}")).into()),
        None => return Err(CallError::invalid("no setting specified").into()),
    };
    Ok(format.print(&address.into()).into())
}

fn application_version_set(call: Call<'_>) -> Result<Output, Interruption> {
    let [version] = call.at_most()?;
    let version = version.ok_or_else(|| CallError::invalid("no version specified"))?;
    call.run.set_application_version(call.now, version)?;
    Ok(silent())
}
