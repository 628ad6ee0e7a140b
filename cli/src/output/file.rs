//! Files that commands write, by one rule.
//!
//! A path that exists and is no ordinary file (a device, a FIFO) is written to, and a link leads to its target: neither
//! is replaced. Standard output and standard error, by any path, are written as the streams that they are.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind, IsTerminal as _, Write},
    os::{
        fd::AsFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    },
    path::{Path, PathBuf},
};

/// The destination of a path.
enum Destination {
    /// This process's own standard output or standard error.
    Stream(Box<dyn Write>, bool),
    /// An existing file that cannot be replaced.
    There,
    /// An ordinary file, or one to create, after all links.
    Ordinary(PathBuf),
}

impl Destination {
    fn of(path: &Path) -> io::Result<Self> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            // A link to a file that does not exist yet.
            Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => return Ok(Self::There),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Ordinary(path.to_owned())),
            Err(error) => return Err(error),
        };
        if let Some(stream) = own_stream(&there) {
            return Ok(stream);
        }
        match there.is_file() && !is_descriptor(path) {
            true => Ok(Self::Ordinary(fs::canonicalize(path)?)),
            false => Ok(Self::There),
        }
    }
}

/// Returns the standard stream of this process that is the same file.
fn own_stream(there: &fs::Metadata) -> Option<Destination> {
    let is_there = |stream: io::Result<rustix::fs::Stat>| {
        stream.is_ok_and(|own| (own.st_dev, own.st_ino) == (there.dev(), there.ino()))
    };
    let (output, error) = (io::stdout(), io::stderr());
    if is_there(rustix::fs::fstat(output.as_fd()).map_err(Into::into)) {
        let watched = output.is_terminal();
        return Some(Destination::Stream(Box::new(output), watched));
    }
    is_there(rustix::fs::fstat(error.as_fd()).map_err(Into::into)).then(|| {
        let watched = error.is_terminal();
        Destination::Stream(Box::new(error), watched)
    })
}

/// Returns true if a path names an open descriptor, whose opener expects the output there.
fn is_descriptor(path: &Path) -> bool {
    let directory = path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    directory.is_some_and(|directory| directory.starts_with("/proc") && directory.ends_with("fd"))
}

/// Opens a path to write in pieces, and returns true if it is a terminal. An ordinary file is emptied.
pub(super) fn opened(path: &Path) -> io::Result<(Box<dyn Write>, bool)> {
    if let Destination::Stream(stream, watched) = Destination::of(path)? {
        return Ok((stream, watched));
    }
    let file = File::create(path)?;
    let watched = file.is_terminal();
    Ok((Box::new(file), watched))
}

/// Writes a file whole. An ordinary file is never half written under its name, and keeps its owner and mode.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = match Destination::of(path)? {
        Destination::Stream(mut stream, _) => return stream.write_all(bytes).and_then(|()| stream.flush()),
        Destination::There => return in_place(path, bytes),
        Destination::Ordinary(real) => real,
    };
    match replace(&real, bytes) {
        // A file that cannot be replaced, in a read-only directory or as a mount of its own, may be writable.
        Err(error) if is_tied(&error) && real.exists() => in_place(&real, bytes),
        done => done,
    }
}

fn is_tied(error: &io::Error) -> bool {
    use ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy | CrossesDevices)
}

fn in_place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = fs::metadata(path).ok();
    // The process's umask decides the mode of a new file.
    let mode = there.as_ref().map_or(0o666, |there| there.mode() & 0o777);
    let mut partial =
        tempfile::Builder::new().prefix(".periapt-").suffix(".part").make_in(parent, |partial| {
            OpenOptions::new().write(true).create_new(true).mode(mode).open(partial)
        })?;
    partial.write_all(bytes)?;
    if let Some(there) = there {
        partial.as_file().set_permissions(Permissions::from_mode(mode))?;
        // Only root can change the owner. For other users the file is their own already, or becomes so.
        let _ = fchown(partial.as_file(), Some(there.uid()), Some(there.gid()));
    }
    partial.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        symlink("real", here.join("link")).unwrap();
        for text in ["made", "replaced"] {
            write_whole(&here.join("link"), text.as_bytes()).unwrap();
            assert_eq!(fs::read_link(here.join("link")).unwrap(), Path::new("real"));
            assert_eq!(fs::read_to_string(here.join("real")).unwrap(), text);
        }
        assert_eq!(names(here), ["link", "real"]);
    }

    #[test]
    fn a_fifo_is_written_to_and_stays() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let reader = std::thread::spawn({
            let fifo = fifo.clone();
            move || fs::read_to_string(fifo).unwrap()
        });
        write_whole(&fifo, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(!fs::metadata(&fifo).unwrap().is_file());
        assert_eq!(names(directory.path()), ["fifo"]);
    }

    #[test]
    fn an_open_file_that_is_named_by_its_number_is_written_where_it_is() {
        use std::os::fd::AsRawFd as _;
        let mut file = tempfile::tempfile().unwrap();
        write_whole(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), b"there").unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "there");
    }

    #[test]
    fn a_file_keeps_its_mode_and_nothing_is_left_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept");
        fs::write(&path, "long before").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write_whole(&path, b"now").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"now");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert!(write_whole(directory.path(), b"now").is_err());
        let error = write_whole(&directory.path().join("none/x"), b"now").unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        assert_eq!(names(directory.path()), ["kept"]);
    }
}
