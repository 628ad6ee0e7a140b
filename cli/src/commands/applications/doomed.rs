//! How removals of applications and units name what goes.

use periapt_host_api::command::Answer;

/// What goes with units, as `--dry-run` lists it.
pub(super) fn units_below<T: ToString>(units: &[T]) -> Vec<String> {
    units.iter().map(|unit| format!("unit {}", unit.to_string())).collect()
}

/// Names in a question.
pub(super) fn list<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether what was removed is gone already.
pub(super) fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Removal { gone: true, .. })
}
