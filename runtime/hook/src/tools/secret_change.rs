//! `secret-add`, `secret-set`, `secret-remove`

use std::collections::BTreeMap;

use periapt_host_api::{
    secret::{
        ContentError, SecretData, SecretRevision,
        content::{BASE64_SUFFIX, base64},
        policy::parse_expire,
    },
    yaml,
};

use super::{
    Output, Tool,
    call::{Call, silent},
    flags::{Flag, Initial, Kind},
    secret::{LABEL, uri},
};
use crate::{CallError, NewOwner, SecretMetadata, lease::Interruption};

/// The suffix of a key whose value is the path of a file.
const FILE_SUFFIX: &str = "#file";

const METADATA: &[Flag] = &[
    Flag { names: &["--description"], kind: Kind::Text(""), help: "The secret's description" },
    Flag {
        names: &["--expire"],
        kind: Kind::Text(""),
        help: "A duration, or a time in RFC 3339, after which the secret expires",
    },
    Flag { names: &["--rotate"], kind: Kind::Text(""), help: "The rotation policy of the secret" },
    Flag {
        names: &["--file"],
        kind: Kind::Text(""),
        help: "Read a YAML map of keys and values from a file of the hook's own, or from - (standard input)",
    },
];

const OWNER: &[Flag] = &[Flag {
    names: &["--owner"],
    kind: Kind::Text("application"),
    help: "The owner of the secret: application or unit",
}];

pub(super) const SECRET_ADD: Tool = Tool {
    name: "secret-add",
    arguments: "[<key>[#base64|#file]=<value> ...]",
    summary: "Make a secret with the hook's commit, and print its URI.",
    flags: &[LABEL, METADATA, OWNER],
    run: secret_add,
};

pub(super) const SECRET_SET: Tool = Tool {
    name: "secret-set",
    arguments: "<URI> [<key>[#base64|#file]=<value> ...]",
    summary: "Change a secret with the hook's commit; other content makes a new revision.",
    flags: &[LABEL, METADATA, OWNER],
    run: secret_set,
};

pub(super) const SECRET_REMOVE: Tool = Tool {
    name: "secret-remove",
    arguments: "<URI>",
    summary: "Remove a secret, or one revision of it.",
    flags: &[&[Flag {
        names: &["--revision"],
        kind: Kind::Value(Initial::Fixed("0")),
        help: "Remove this revision alone",
    }]],
    run: secret_remove,
};

fn secret_add(mut call: Call<'_>) -> Result<Output, Interruption> {
    let (metadata, owner) = (metadata(&call)?, owner(&call)?);
    let Some(content) = content(&mut call, 0)? else {
        return Err(CallError::invalid("missing secret value or filename").into());
    };
    let id = call.run.add_secret(call.now, owner, content, metadata)?;
    Ok(format!("{}\n", id.uri()).into())
}

fn secret_set(mut call: Call<'_>) -> Result<Output, Interruption> {
    let id = call.run.secret_uri(uri(call.arguments.first().copied())?)?;
    let metadata = metadata(&call)?;
    owner(&call)?;
    let content = content(&mut call, 1)?;
    call.run.set_secret(call.now, id, content, metadata)?;
    Ok(silent())
}

fn secret_remove(call: Call<'_>) -> Result<Output, Interruption> {
    let [given] = call.at_most()?;
    let id = call.run.secret_uri(uri(given)?)?;
    let revision = call.flags.value("--revision").map(|given| {
        let wrong = || CallError::invalid(format!("revision {:?} not valid", given.value));
        let revision: SecretRevision = given.value.parse().map_err(|_| wrong())?;
        if revision.0 > 0 { Ok(revision) } else { Err(wrong()) }
    });
    call.run.remove_secret(call.now, id, revision.transpose()?)?;
    Ok(silent())
}

fn owner(call: &Call<'_>) -> Result<NewOwner, CallError> {
    match call.flags.value("--owner").map(|given| given.value.as_str()) {
        None | Some("application") => Ok(NewOwner::Application),
        Some("unit") => Ok(NewOwner::Unit),
        Some(other) => Err(CallError::invalid(format!("secret owner {other:?} not valid"))),
    }
}

fn metadata(call: &Call<'_>) -> Result<SecretMetadata, CallError> {
    let text = |name: &str| call.flags.value(name).map(|given| given.value.clone());
    let rotate = text("--rotate").map(|policy| policy.parse());
    let expire = text("--expire").map(|expire| parse_expire(&expire, call.now.at));
    Ok(SecretMetadata {
        label: text("--label").filter(|label| !label.is_empty()),
        description: text("--description"),
        rotate: rotate.transpose().map_err(|error| CallError::invalid(format!("{error}")))?,
        expire: expire.transpose().map_err(|error| CallError::invalid(error.to_string()))?,
    })
}

/// Returns the content of arguments and `--file`; none if there is none. A `#file` that cannot be read is an
/// invalid argument, as in Juju.
fn content(call: &mut Call<'_>, first: usize) -> Result<Option<SecretData>, Interruption> {
    let mut texts = BTreeMap::new();
    let file = call.file_text()?;
    let mut given = file.is_some();
    if let Some(file) = file {
        texts = yaml::parse(&file)
            .map_err(|error| CallError::Failed(format!("cannot read secret values: {error}")))?;
    }
    let mut files = Vec::new();
    for argument in call.arguments.iter().skip(first).filter(|argument| !argument.is_empty()) {
        let (key, value) = argument
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| CallError::invalid(format!("key value {argument:?} not valid")))?;
        match key.trim().strip_suffix(FILE_SUFFIX) {
            Some(key) => files.push((key, value.trim())),
            None => {
                texts.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
        given = true;
    }
    for (key, path) in files {
        let value = call.run.read_file(path).map_err(|interruption| match interruption {
            Interruption::Refused(error) => {
                CallError::invalid(format!("reading content for secret key {key:?}: {error}")).into()
            }
            other => other,
        })?;
        texts.insert(format!("{key}{BASE64_SUFFIX}"), base64(&value));
    }
    if !given {
        return Ok(None);
    }
    let content = SecretData::from_texts(texts).map_err(|error| match error {
        ContentError::Empty => CallError::Failed(error.to_string()),
        _ => CallError::InvalidArgument(error.to_string()),
    });
    Ok(Some(content?))
}
