//! `secret-grant`, `secret-revoke`

use periapt_host_api::{ApplicationName, UnitName, secret::SecretReader};

use super::{
    Output, Tool,
    call::{Call, RELATION, silent},
    flags::{Flag, Kind},
    secret::uri,
};
use crate::{CallError, lease::Interruption};

const UNIT: &[Flag] = &[Flag { names: &["--unit"], kind: Kind::Text(""), help: "Speak of one unit alone" }];

pub(super) const SECRET_GRANT: Tool = Tool {
    name: "secret-grant",
    arguments: "<URI>",
    summary: "Let the application at the other end of a relation, or one unit of it, read a secret.",
    flags: &[RELATION, UNIT],
    run: secret_grant,
};

pub(super) const SECRET_REVOKE: Tool = Tool {
    name: "secret-revoke",
    arguments: "<URI>",
    summary: "Take back that an application or a unit may read a secret.",
    flags: &[
        RELATION,
        UNIT,
        &[Flag { names: &["--app", "--application"], kind: Kind::Text(""), help: "Speak of an application" }],
    ],
    run: secret_revoke,
};

fn secret_grant(call: Call<'_>) -> Result<Output, Interruption> {
    let [given] = call.at_most()?;
    let id = call.run.secret_uri(uri(given)?)?;
    let relation = call.relation()?;
    let unit = call.flags.value("--unit").map(|given| given.value.clone());
    call.run.grant_secret(call.now, id, relation, unit.as_deref())?;
    Ok(silent())
}

fn secret_revoke(call: Call<'_>) -> Result<Output, Interruption> {
    let [given] = call.at_most()?;
    let id = call.run.secret_uri(uri(given)?)?;
    let value = |name| call.flags.value(name).map(|given| given.value.as_str());
    let wrong = |text: &str| Err(CallError::invalid(text).into());
    let reader = match (value("--app"), value("--unit"), value("-r")) {
        (Some(_), Some(_), _) => return wrong("specify only one of application or unit"),
        (Some(_), None, Some(_)) => return wrong("do not specify both relation and app"),
        (None, None, None) => return wrong("missing relation or application or unit"),
        (Some(name), None, None) => {
            let name = name.parse::<ApplicationName>();
            SecretReader::Application(name.map_err(|error| CallError::invalid(error.to_string()))?)
        }
        (None, Some(name), relation) => {
            let unit = name.parse::<UnitName>().map_err(|error| CallError::invalid(error.to_string()))?;
            if relation.is_some() {
                call.relation()?;
            }
            SecretReader::Unit(unit)
        }
        (None, None, Some(_)) => call.run.reader_of(call.relation()?)?,
    };
    call.run.revoke_secret(call.now, id, reader)?;
    Ok(silent())
}
