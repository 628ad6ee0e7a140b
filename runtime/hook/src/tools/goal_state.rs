//! `goal-state`

use serde_json::{Map, Value, json};

use super::{
    Output, Tool,
    call::{Call, OUTPUT_FILE},
    flags::{Flag, Initial, Kind},
    format::Format,
};
use crate::{CallError, GoalStatus, lease::Interruption};

pub(super) const GOAL_STATE: Tool = Tool {
    name: "goal-state",
    arguments: "",
    summary: "Print which units are wanted, here and in relations, and how they are.",
    flags: &[
        &[Flag {
            names: &["--format"],
            kind: Kind::Value(Initial::Fixed("yaml")),
            help: "Specify output format (json|yaml)",
        }],
        OUTPUT_FILE,
    ],
    run: goal_state,
};

fn goal_state(call: Call<'_>) -> Result<Output, Interruption> {
    let format = match call.format_or(Format::Yaml)? {
        Format::Smart => {
            let text = "invalid value \"smart\" for option --format: unknown format \"smart\"";
            return Err(CallError::invalid(text).into());
        }
        format => format,
    };
    let [] = call.at_most()?;
    let goal = call.run.goal_state();
    let statuses = |statuses: std::collections::BTreeMap<String, GoalStatus>| -> Map<String, Value> {
        let shown = |status: GoalStatus| json!({"status": status.status, "since": status.since});
        statuses.into_iter().map(|(name, status)| (name, shown(status))).collect()
    };
    let relations: Map<String, Value> = goal
        .relations
        .into_iter()
        .map(|(endpoint, related)| (endpoint.to_string(), statuses(related).into()))
        .collect();
    Ok(format.print(&json!({"units": statuses(goal.units), "relations": relations})).into())
}
