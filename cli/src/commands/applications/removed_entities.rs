//! Names of the entities that are removed together with an application or a unit, for the messages of removals.

use periapt_host_api::command::Answer;

/// Formats the units that a removal removes, too, for `--dry-run`.
pub(super) fn units_below<T: ToString>(units: &[T]) -> Vec<String> {
    units.iter().map(|unit| format!("unit {}", unit.to_string())).collect()
}

/// Joins names for a question.
pub(super) fn list<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns true if a removal is complete already.
pub(super) fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Removal { gone: true, .. })
}
