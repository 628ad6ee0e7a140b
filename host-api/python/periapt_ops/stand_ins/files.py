"""Files that are made without being written: WASI refuses to create one that is opened for reading alone.

`os.open(path, os.O_CREAT | os.O_EXCL)` is how programs make a lock or an empty file with the right mode; `ops` does so, and
so do libraries. POSIX allows it. So whoever creates a file opens it for writing as well.
"""

import functools
import os


def install() -> None:
    """Put it in the place of the real one."""
    os.open = creating(os.open)


def creating(real):
    """`os.open` that opens what it creates for writing, too."""

    @functools.wraps(real)
    def open(path, flags, mode=0o777, *, dir_fd=None):
        if flags & os.O_CREAT and not flags & (os.O_WRONLY | os.O_RDWR):
            flags |= os.O_RDWR
        return real(path, flags, mode, dir_fd=dir_fd)

    return open
