//! Texts of strangers in errors.

/// The most characters of a stranger's text in an error.
const SHOWN: usize = 120;

/// Returns a text without control characters, and not longer than an error should be.
pub(crate) fn shown(text: &str) -> String {
    let mut letters = text.chars().flat_map(|letter| {
        let escaped: Vec<char> = match letter.is_control() {
            true => letter.escape_default().collect(),
            false => vec![letter],
        };
        escaped
    });
    let mut short: String = letters.by_ref().take(SHOWN).collect();
    if letters.next().is_some() {
        short.push('\u{2026}');
    }
    short
}
