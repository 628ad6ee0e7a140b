//! `--help`.

use super::{
    Tool,
    flags::{Flag, Kind},
};

/// How a tool is used.
pub(super) fn text(tool: &Tool) -> String {
    let usage = format!("Usage: {} [options] {}", tool.name, tool.arguments);
    let options: String = tool.flags.iter().flat_map(|group| group.iter()).map(option).collect();
    let (usage, summary) = (usage.trim_end(), tool.summary);
    match options.is_empty() {
        true => format!("{usage}\n\nSummary:\n{summary}\n"),
        false => format!("{usage}\n\nSummary:\n{summary}\n\nOptions:\n{options}"),
    }
}

fn option(flag: &Flag) -> String {
    let value = match flag.kind {
        Kind::Switch => String::new(),
        Kind::Value(name) => format!(" <{name}>"),
    };
    format!("{}{value}\n    {}\n", flag.names.join(", "), flag.help)
}
