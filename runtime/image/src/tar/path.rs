//! Paths of entries.

use std::borrow::Cow;

use crate::limits::{MAX_DEPTH, MAX_NAME, MAX_PATH};

/// Returns a path below the image's root, with one `/` between names and none around them. The root itself is the
/// empty path. A path that begins with `/` begins at the image's root.
pub(crate) fn relative(path: &str) -> Result<String, Cow<'static, str>> {
    if path.len() > MAX_PATH {
        return Err("its path is longer than 4095 bytes".into());
    }
    if path.contains('\0') {
        return Err("its path has a byte of value 0".into());
    }
    let mut clean = String::with_capacity(path.len());
    let mut depth = 0;
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        if name == ".." {
            return Err("its path has a part `..`".into());
        }
        if name.len() > MAX_NAME {
            return Err("its path has a part of more than 255 bytes".into());
        }
        depth += 1;
        if depth > MAX_DEPTH {
            return Err(format!("its path has more than {MAX_DEPTH} parts").into());
        }
        if !clean.is_empty() {
            clean.push('/');
        }
        clean.push_str(name);
    }
    Ok(clean)
}

/// Returns true for a text that a symbolic link may hold. It may name anything: links are not followed.
pub(crate) fn is_link_target(target: &str) -> bool {
    !target.is_empty() && target.len() <= MAX_PATH && !target.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_images_root() {
        for (path, clean) in
            [("./", ""), ("/", ""), (".", ""), ("/a/b/", "a/b"), ("./a//./b", "a/b"), ("...", "...")]
        {
            assert_eq!(relative(path).as_deref(), Ok(clean), "{path}");
        }
    }

    #[test]
    fn paths_that_lead_out_or_are_too_long_are_refused() {
        let deep = "a/".repeat(MAX_DEPTH + 1);
        for path in ["..", "a/../b", "/..", "a\0b", &"n".repeat(256), &deep, &"n/".repeat(2048)] {
            assert!(relative(path).is_err(), "{path}");
        }
    }
}
