//! The document `docs/access.md`: the table of rights, with the routes and commands that need each.

use std::fmt::Write as _;

use periapt_model::{CONTROLLER_COMMANDS, MODEL_COMMANDS, Right, TABLE, name_in_requests};

use crate::api::routes::table;

/// The beginning of the document.
const INTRODUCTION: &str = "\
# Who may do what

<!-- Written by `PERIAPT_UPDATE=1 cargo nextest run --workspace -E 'test(document)'`, from the table
of rights in `controller/model/src/access/table.rs`. -->

Every route of the API and every command needs one right. A caller has it if one of its holders
applies. Superusers administer every model, and the administrators of a model all of its offers.

A caller who may not see a model, an offer or a user is answered as if it did not exist. A caller
who sees it and lacks the right is answered `permission denied`, and one who proves no valid
identity `not logged in`. An agent is answered `permission denied` for all that is not its own.

An API token has the rights of its user that its scope leaves: nothing about users and sessions, no
more than its level of access, and its models alone.

";

/// A route of the API, with the right that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRight {
    /// The HTTP method.
    pub method: String,
    /// The path, with its variable parts in braces.
    pub path: &'static str,
    /// The right.
    pub right: Right,
}

/// Returns the rights of all routes.
pub fn route_rights() -> Vec<RouteRight> {
    let of = |(path, method, right): (&'static str, String, Right)| RouteRight { method, path, right };
    let routes = table().into_iter().flat_map(|route| {
        let path = route.path;
        route
            .operations
            .into_iter()
            .map(move |operation| (path, operation.method.to_string(), operation.right))
    });
    routes.map(of).collect()
}

/// Returns the document of this version.
pub fn access_document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("| right | subject | allows | holders |\n| --- | --- | --- | --- |\n");
    for row in TABLE {
        let holders: Vec<&str> = row.holders.iter().map(|holder| holder.as_str()).collect();
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            row.right.name(),
            row.subject.as_str(),
            row.allows.trim_end_matches('.'),
            holders.join(", ")
        );
    }
    text.push_str("\n## Routes\n\n| route | right |\n| --- | --- |\n");
    for RouteRight { method, path, right } in route_rights() {
        let _ = writeln!(text, "| `{method} {path}` | `{}` |", right.name());
    }
    text.push_str("\n## Commands\n\nA command needs its own right besides that of the route.\n\n");
    text.push_str("| command | right |\n| --- | --- |\n");
    for (command, right) in CONTROLLER_COMMANDS.iter().chain(MODEL_COMMANDS) {
        let right = match *command {
            "EnqueueOperation" => {
                format!("`{}`; for a script `{}`", right.name(), Right::AdministerModel.name())
            }
            _ => format!("`{}`", right.name()),
        };
        let _ = writeln!(text, "| `{}` | {right} |", name_in_requests(command));
    }
    text
}
