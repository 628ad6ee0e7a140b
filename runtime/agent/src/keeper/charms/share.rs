//! Files that several charms contain, byte for byte, stored once; all charms in Python contain the same libraries.
//!
//! A directory holds a hard link to each file of each charm, under the digest of its content. No process writes to a
//! charm's files, so sharing has no effect on charms.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use periapt_archive::COMPONENT;
use ring::digest::{Context, SHA256};

/// The size of one read, in bytes.
const PIECE: usize = 64 << 10;

/// The extension of a link before it replaces a file.
const LINK: &str = "link";

/// Replaces a new charm's files by links to those of other charms, and adds links to its other files for later charms.
/// The component stays out: it is deleted once it is compiled.
pub(super) fn share(charm: &Path, shared: &Path) -> io::Result<()> {
    let component = charm.join(COMPONENT);
    let mut waiting = vec![charm.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file()
                && path != component
                && let Err(error) = share_file(&path, shared)
            {
                // The file system supports no links, or no further link to this file.
                tracing::debug!(path = %path.display(), %error, "a file is not shared");
            }
        }
    }
    Ok(())
}

fn share_file(path: &Path, shared: &Path) -> io::Result<()> {
    let digest = digest(path)?;
    let place = shared.join(&digest);
    match fs::hard_link(path, &place) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => return linked,
    }
    let (from, to) = match self::digest(&place).is_ok_and(|there| there == digest) {
        true => (place.as_path(), path),
        // The shared file is damaged: later charms get the new one.
        false => (path, place.as_path()),
    };
    // If two charms share the same file at once, the later one keeps its own.
    let beside = shared.join(digest).with_extension(LINK);
    fs::hard_link(from, &beside)?;
    fs::rename(&beside, to)
}

/// Removes links that no charm uses, and those that a crash left. No charm may be shared meanwhile.
pub(super) fn sweep(shared: &Path) -> io::Result<()> {
    for entry in fs::read_dir(shared)? {
        let entry = entry?;
        let is_unfinished = entry.path().extension().is_some_and(|extension| extension == LINK);
        if is_unfinished || entry.metadata()?.nlink() == 1 {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut context, mut piece) = (File::open(path)?, Context::new(&SHA256), vec![0; PIECE]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => context.update(piece.get(..read).unwrap_or_default()),
        }
    }
    Ok(hex::encode(context.finish()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Creates a charm's directory with files.
    fn charm(root: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = root.join(name);
        for (path, content) in files {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        directory
    }

    fn inode(path: &Path) -> u64 {
        fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn equal_files_of_charms_are_one_and_go_with_the_last_charm() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        fs::create_dir(&shared).unwrap();
        let files = [("venv/ops/main.py", "the same"), ("src/charm.py", "one"), ("charm.wasm", "component")];
        let one = charm(root.path(), "one", &files);
        let files = [("lib/main.py", "the same"), ("src/charm.py", "other"), ("charm.wasm", "component")];
        let other = charm(root.path(), "other", &files);
        share(&one, &shared).unwrap();
        share(&other, &shared).unwrap();
        assert_eq!(inode(&one.join("venv/ops/main.py")), inode(&other.join("lib/main.py")));
        assert_ne!(inode(&one.join("charm.wasm")), inode(&other.join("charm.wasm")));
        assert_eq!(fs::read_to_string(one.join("src/charm.py")).unwrap(), "one");
        assert_eq!(fs::read_to_string(other.join("src/charm.py")).unwrap(), "other");
        let kept = || fs::read_dir(&shared).unwrap().count();
        assert_eq!(kept(), 3);
        fs::remove_dir_all(&one).unwrap();
        sweep(&shared).unwrap();
        assert_eq!(kept(), 2);
        assert_eq!(fs::read_to_string(other.join("lib/main.py")).unwrap(), "the same");
        fs::remove_dir_all(&other).unwrap();
        sweep(&shared).unwrap();
        assert_eq!(kept(), 0);
    }

    #[test]
    fn a_damaged_file_is_given_to_nobody() {
        let root = tempfile::tempdir().unwrap();
        let shared = root.path().join("shared");
        fs::create_dir(&shared).unwrap();
        let one = charm(root.path(), "one", &[("a", "as it came")]);
        share(&one, &shared).unwrap();
        fs::write(one.join("a"), "damaged").unwrap();
        let other = charm(root.path(), "other", &[("a", "as it came")]);
        share(&other, &shared).unwrap();
        let third = charm(root.path(), "third", &[("a", "as it came")]);
        share(&third, &shared).unwrap();
        assert_eq!(fs::read_to_string(other.join("a")).unwrap(), "as it came");
        assert_eq!(inode(&other.join("a")), inode(&third.join("a")));
    }
}
