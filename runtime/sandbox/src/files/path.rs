//! The look-up of a guest's path in a tree.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::tree::{DirectoryId, Entry, Tree};

/// The most bytes of a path and of each name in it: the usual limits of POSIX systems.
pub(super) const MAX_PATH: usize = 4_096;
pub(super) const MAX_NAME: usize = 255;

/// The target of a path.
#[derive(Debug)]
pub(super) enum TreeTarget<'a> {
    /// The start of the look-up, or a directory above the path's end (`a/..`).
    Directory(DirectoryId),
    /// A name in a directory. It may be free or taken.
    Name { parent: DirectoryId, name: &'a str, must_be_directory: bool },
}

/// Resolves a path from a directory, but not to a place above that directory, since the guest's handle gives
/// access only to what is below it. There are no symbolic links.
pub(super) fn resolve<'a>(
    tree: &Tree,
    base: DirectoryId,
    path: &'a str,
) -> Result<TreeTarget<'a>, ErrorCode> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry);
    }
    if path.len() > MAX_PATH {
        return Err(ErrorCode::NameTooLong);
    }
    if path.starts_with('/') {
        return Err(ErrorCode::NotPermitted);
    }
    if path.contains('\0') {
        return Err(ErrorCode::Invalid);
    }
    let mut stack = vec![base];
    let mut names = path.split('/').filter(|name| !name.is_empty() && *name != ".").peekable();
    while let Some(name) = names.next() {
        let here = *stack.last().ok_or(ErrorCode::NotPermitted)?;
        if name == ".." {
            stack.pop();
            if stack.is_empty() {
                return Err(ErrorCode::NotPermitted);
            }
            continue;
        }
        if name.len() > MAX_NAME {
            return Err(ErrorCode::NameTooLong);
        }
        if names.peek().is_none() {
            let must_be_directory = path.ends_with('/') || path.ends_with("/.");
            return Ok(TreeTarget::Name { parent: here, name, must_be_directory });
        }
        match tree.directory(here)?.entries.get(name) {
            Some(Entry::Directory(id)) => stack.push(*id),
            Some(_) => return Err(ErrorCode::NotDirectory),
            None => return Err(ErrorCode::NoEntry),
        }
    }
    stack.last().map(|id| TreeTarget::Directory(*id)).ok_or(ErrorCode::NotPermitted)
}

/// Returns the entry of a path.
pub(super) fn find(tree: &Tree, base: DirectoryId, path: &str) -> Result<Entry, ErrorCode> {
    match resolve(tree, base, path)? {
        TreeTarget::Directory(id) => Ok(Entry::Directory(id)),
        TreeTarget::Name { parent, name, must_be_directory } => {
            match tree.directory(parent)?.entries.get(name) {
                Some(Entry::Directory(id)) => Ok(Entry::Directory(*id)),
                Some(_) if must_be_directory => Err(ErrorCode::NotDirectory),
                Some(file) => Ok(file.clone()),
                None => Err(ErrorCode::NoEntry),
            }
        }
    }
}

/// Returns the path from one place to another beneath it; none if it is not beneath.
pub(super) fn beneath<'p>(outer: &str, inner: &'p str) -> Option<&'p str> {
    inner.strip_prefix(outer)?.strip_prefix('/').filter(|way| !way.is_empty())
}

/// Joins a place and a path. Storage has no links, so `..` can be resolved by names alone.
pub(super) fn joined(place: &str, path: &str) -> String {
    let mut names: Vec<&str> = place.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::tree::ROOT, *};

    fn check(base: &str, path: &str) -> Result<String, ErrorCode> {
        let mut tree = Tree::new(Duration::ZERO);
        let a = tree.make_directory(ROOT, "a", Duration::ZERO).unwrap();
        let b = tree.make_directory(a, "b", Duration::ZERO).unwrap();
        let name = |id| {
            if id == ROOT {
                "/"
            } else if id == a {
                "/a"
            } else {
                "/a/b"
            }
        };
        let base = [ROOT, a, b].into_iter().find(|id| name(*id) == base).unwrap();
        resolve(&tree, base, path).map(|place| match place {
            TreeTarget::Directory(id) => name(id).to_owned(),
            TreeTarget::Name { parent, name: last, .. } => format!("{}:{last}", name(parent)),
        })
    }

    #[test]
    fn paths_lead_where_posix_says() {
        assert_eq!(check("/", "x"), Ok("/:x".into()));
        assert_eq!(check("/", "./a//x"), Ok("/a:x".into()));
        assert_eq!(check("/", "a/b/../x"), Ok("/a:x".into()));
        assert_eq!(check("/", "a/.."), Ok("/".into()));
        assert_eq!(check("/", "."), Ok("/".into()));
        assert_eq!(check("/", "a/b/"), Ok("/a:b".into()));
        assert_eq!(check("/", "a/none/x"), Err(ErrorCode::NoEntry));
        assert_eq!(check("/", ""), Err(ErrorCode::NoEntry));
    }

    #[test]
    fn no_path_leads_above_its_base() {
        for path in ["..", "../a", "b/../..", "./../x", "/etc/passwd", "b/../../a"] {
            assert_eq!(check("/a", path), Err(ErrorCode::NotPermitted), "{path}");
        }
    }

    #[test]
    fn names_are_bounded() {
        assert_eq!(check("/", &"x".repeat(256)), Err(ErrorCode::NameTooLong));
        assert_eq!(check("/", &"./".repeat(3000)), Err(ErrorCode::NameTooLong));
        assert_eq!(check("/", "a\0b"), Err(ErrorCode::Invalid));
    }
}
