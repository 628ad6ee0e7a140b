//! The change of a process's program by `execve`.

use std::{
    ffi::OsString,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Command, Stdio},
};

/// The file of the program that runs, also if another file has its path now.
pub(crate) const OWN_FILE: &str = "/proc/self/exe";

/// The command line of a service that starts itself anew.
#[derive(Debug, Clone)]
pub struct Again {
    /// The name by which the program is called.
    pub name: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
}

impl Again {
    /// Replaces the running program by its own file, after the service has ended. Nothing of it is open then.
    ///
    /// # Errors
    /// The error of `execve`; on success it does not return.
    pub fn begin_anew(&self) -> io::Error {
        self.become_released(Path::new(OWN_FILE))
    }

    /// Replaces the running program by another file.
    pub(crate) fn become_file(&self, path: &Path, input: Stdio) -> io::Error {
        Command::new(path).arg0(&self.name).args(&self.arguments).stdin(input).exec()
    }

    /// Replaces the running program by another file, whose standard input is a pipe with a byte: a service in
    /// the background takes its end without one for the death of its starter, which has recorded this process long ago.
    pub(crate) fn become_released(&self, path: &Path) -> io::Error {
        let released = || {
            let (reader, mut writer) = io::pipe()?;
            writer.write_all(b"\n")?;
            Ok::<_, io::Error>(reader)
        };
        match released() {
            Ok(reader) => self.become_file(path, reader.into()),
            Err(error) => error,
        }
    }
}
