//! What is done with a stranger's bytes: as an archive, and as a component, which an archive's checksum would hide from
//! most changes.

use periapt_archive::{InspectError, check_component, inspect};

/// Reads bytes in each way in which uploads are; says whether any is a charm. Panics if a reader does.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let archive = inspect(bytes);
    assert!(!matches!(archive, Err(InspectError::Reader(_))), "{archive:?}");
    let component = check_component(bytes);
    for text in
        [archive.as_ref().err().map(ToString::to_string), component.as_ref().err().map(ToString::to_string)]
    {
        // What is told of it fits into an answer, however long its names are.
        assert!(text.is_none_or(|text| text.len() < 32 << 10), "an error of great length");
    }
    archive.is_ok() || component.is_ok()
}
