//! Names of what goes with an application or a unit, as removals tell them.

use periapt_host_api::command::Answer;

/// Units that go with others, as `--dry-run` lists them.
pub(super) fn units_below<T: ToString>(units: &[T]) -> Vec<String> {
    units.iter().map(|unit| format!("unit {}", unit.to_string())).collect()
}

/// Names in a question.
pub(super) fn list<T: ToString>(names: &[T]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Tells whether a removal is over already.
pub(super) fn is_gone(answer: &Answer) -> bool {
    matches!(answer, Answer::Removal { gone: true, .. })
}
