//! Glob patterns with `*`.

/// Returns true if a pattern, in which `*` stands for any text, matches a name. Takes at most time in the product of
/// their lengths.
pub fn glob(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = left.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name) in [("*", ""), ("a*", "a"), ("*a", "ba"), ("a*c*e", "abcde"), ("a**b", "ab")] {
            assert!(glob(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a", "ab"), ("a*", "ba"), ("a*b", "a"), ("ab*bc", "abc"), ("a*b*b", "ab")] {
            assert!(!glob(pattern, name), "{pattern} {name}");
        }
    }
}
