//! Bounds for texts of charms.

/// Returns at most `bytes` bytes of the text's beginning, cut at a character boundary.
pub(crate) fn truncate(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
