"""Locks on files: WASI has no `fcntl`.

Charms lock files against other processes of the same machine. A hook is alone with its files, so each lock is had at
once. Anything else that `fcntl` can do to a descriptor is refused.
"""

import errno
import os
import sys
import types


def install() -> None:
    """Add the module where it is missing."""
    sys.modules.setdefault("fcntl", fcntl_module())


def fcntl_module() -> types.ModuleType:
    """A `fcntl` that locks."""
    module = types.ModuleType("fcntl", "Locks on files that nobody else has open.")
    constants = {"LOCK_SH": 1, "LOCK_EX": 2, "LOCK_NB": 4, "LOCK_UN": 8, "F_GETFD": 1, "F_SETFD": 2, "F_GETFL": 3, "F_SETFL": 4}
    vars(module).update(constants)
    module.flock = lambda fd, operation: None
    module.lockf = lambda fd, cmd, len=0, start=0, whence=0: None
    module.fcntl = _refused
    module.ioctl = _refused
    return module


def _refused(fd, *arguments):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
