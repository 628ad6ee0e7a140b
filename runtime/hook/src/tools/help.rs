//! `--help`, in the form of Juju's tools, which print each flag's default. Charms read it: ops before 3.4 finds a
//! hook's storage in `storage-get --help`, and charmhelpers looks for `--file` in `relation-set --help`.

use super::{
    Tool,
    flags::{Flag, Initial, Kind},
};
use crate::context::HookRun;

/// Returns the help of a tool. `run` is the calling hook, whose relation and storage are defaults; none outside a
/// hook.
pub(super) fn text(tool: &Tool, run: Option<&HookRun>) -> String {
    let usage = format!("Usage: {} [options] {}", tool.name, tool.arguments);
    let mut flags: Vec<&Flag> = tool.flags.iter().flat_map(|group| group.iter()).collect();
    flags.sort_by_key(|flag| flag.names.first().map(|name| name.trim_start_matches('-')));
    let options: String = flags.into_iter().map(|flag| option(flag, run)).collect();
    let (usage, summary) = (usage.trim_end(), tool.summary);
    match options.is_empty() {
        true => format!("{usage}\n\nSummary:\n{summary}\n"),
        false => format!("{usage}\n\nSummary:\n{summary}\n\nOptions:\n{options}"),
    }
}

/// Formats one option. Text defaults are quoted; other defaults follow two blanks.
fn option(flag: &Flag, run: Option<&HookRun>) -> String {
    let initial = match flag.kind {
        Kind::Switch => "  (= false)".to_owned(),
        Kind::Text(text) => format!(" (= {text:?})"),
        Kind::Value(Initial::Fixed(text)) => format!("  (= {text})"),
        Kind::Value(Initial::Relation) => {
            let relation = run.and_then(HookRun::hook_relation);
            let shown = relation.map(|about| format!("{}:{}", about.endpoint, about.relation));
            format!("  (= {})", shown.unwrap_or_default())
        }
        Kind::Value(Initial::Storage) => {
            let storage = run.and_then(HookRun::hook_storage);
            format!("  (= {})", storage.map(ToString::to_string).unwrap_or_default())
        }
    };
    format!("{}{initial}\n    {}\n", flag.names.join(", "), flag.help)
}
