//! Paths of sockets.

use std::{
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

/// The longest path that the address of a socket has room for, in bytes.
const LONGEST: usize = 107;

/// The path of a socket, short enough for an address. A longer one leads through its open directory.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl SocketPath {
    /// Opens the directory of a socket, if its path is long.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= LONGEST {
            return Ok(Self { path: path.to_owned(), _directory: None });
        }
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "no path of a socket");
        let (parent, name) = (path.parent().ok_or_else(invalid)?, path.file_name().ok_or_else(invalid)?);
        let directory =
            rustix::fs::open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _directory: Some(directory) })
    }

    /// Returns the path, which is valid as long as this value.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_is_found_however_long_its_path_is() {
        for depth in [1, 12] {
            let place = tempfile::tempdir().unwrap();
            let directory =
                (0..depth).fold(place.path().to_owned(), |path, _| path.join("a-directory-of-some-length"));
            std::fs::create_dir_all(&directory).unwrap();
            let socket = directory.join("control.socket");
            let _listener = UnixListener::bind(SocketPath::open(&socket).unwrap().path()).unwrap();
            assert!(socket.exists());
            UnixStream::connect(SocketPath::open(&socket).unwrap().path()).unwrap();
        }
    }
}
