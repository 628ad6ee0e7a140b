//! Truth values as operators and charms write them.

/// Parses `true`, `True`, `TRUE`, `t`, `T`, `1` and their opposites, as Juju does. Returns `None` for any other text.
pub fn parse(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jujus_words_are_truth_values() {
        for (words, truth) in [
            (&["1", "t", "T", "true", "True", "TRUE"][..], Some(true)),
            (&["0", "f", "F", "false", "False", "FALSE"], Some(false)),
            (&["", "yes", "on", "tRUE", "2", " true"], None),
        ] {
            for word in words {
                assert_eq!(parse(word), truth, "{word:?}");
            }
        }
    }
}
