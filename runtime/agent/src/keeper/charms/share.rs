//! Files that several charms bring, byte for byte, as all charms in Python bring the same libraries: they are on the disk once.
//!
//! A directory holds a link to each file of each charm, under the digest of its content. Nobody writes to a charm's files, so
//! nobody sees that they are shared.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::Path,
};

use periapt_archive::COMPONENT;
use ring::digest::{Context, SHA256};

/// How much of a file is read at a time.
const PIECE: usize = 64 << 10;

/// Marks a link that is about to take the place of a file.
const LINK: &str = "link";

/// Replaces what a new charm's directory holds by links to what another charm brought, and lends others the rest. The
/// component stays out: it goes when it is compiled.
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
                // A file system without links, or without room for one more name of this file.
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
        // Something damaged it: others are given what came now.
        false => (path, place.as_path()),
    };
    // Two that share the same file at once: the later one keeps its own.
    let beside = shared.join(digest).with_extension(LINK);
    fs::hard_link(from, &beside)?;
    fs::rename(&beside, to)
}

/// Removes what no charm has any more, and what a crash left. Nobody shares files meanwhile.
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

    /// A charm's directory with these files.
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
