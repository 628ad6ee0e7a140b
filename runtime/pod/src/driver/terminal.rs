//! Pseudo-terminals.

use std::{
    io,
    os::fd::{FromRawFd as _, OwnedFd},
    ptr,
};

use rustix::termios::{Winsize, tcsetwinsize};

/// Opens a pseudo-terminal: the side of the pod, and the side of the process.
pub(crate) fn open(columns: u16, rows: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let (mut ours, mut theirs) = (-1, -1);
    #[expect(
        unsafe_code,
        reason = "openpty writes two descriptors, which nothing else owns; null means defaults"
    )]
    let (ours, theirs) = unsafe {
        if libc::openpty(&mut ours, &mut theirs, ptr::null_mut(), ptr::null_mut(), ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    };
    for side in [&ours, &theirs] {
        rustix::io::fcntl_setfd(side, rustix::io::FdFlags::CLOEXEC)?;
    }
    if columns > 0 && rows > 0 {
        resize(&ours, columns, rows)?;
    }
    Ok((ours, theirs))
}

/// Sets the size of a terminal.
pub(crate) fn resize(terminal: &OwnedFd, columns: u16, rows: u16) -> io::Result<()> {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(terminal, size)?)
}
