//! The fuzz target: reads bytes as an archive and as a component. An archive's checksums would hide most changes of a
//! component within it.

use periapt_archive::{InspectError, check_component, inspect};

/// Reads bytes in each way in which the controller reads uploads. Returns true if any of them is a charm. Panics if a
/// reader panics.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let archive = inspect(bytes);
    assert!(!matches!(archive, Err(InspectError::Reader(_))), "{archive:?}");
    let component = check_component(bytes);
    for text in
        [archive.as_ref().err().map(ToString::to_string), component.as_ref().err().map(ToString::to_string)]
    {
        // The error fits into an HTTP answer, even with long names.
        assert!(text.is_none_or(|text| text.len() < 32 << 10), "an error of great length");
    }
    archive.is_ok() || component.is_ok()
}
