"""Users and groups: WASI has none, and no modules `pwd` and `grp`.

`ops` imports both for Pebble's files, and libraries ask `os.getuid()` to learn whether they are root, as a charm is on a
machine. So the user is root, and root is all that the databases know.
"""

import errno
import os
import sys
import types
from typing import NamedTuple


class Passwd(NamedTuple):
    """As `pwd.struct_passwd`."""

    pw_name: str
    pw_passwd: str
    pw_uid: int
    pw_gid: int
    pw_gecos: str
    pw_dir: str
    pw_shell: str


class Group(NamedTuple):
    """As `grp.struct_group`."""

    gr_name: str
    gr_passwd: str
    gr_gid: int
    gr_mem: list[str]


ROOT_USER = Passwd("root", "x", 0, 0, "root", "/root", "/bin/sh")
ROOT_GROUP = Group("root", "x", 0, [])


def install() -> None:
    """Add the modules where they are missing, and the functions of `os`."""
    for name in ("getuid", "geteuid", "getgid", "getegid"):
        if not hasattr(os, name):
            setattr(os, name, lambda: 0)
    if not hasattr(os, "getgroups"):
        os.getgroups = lambda: [0]
    for name, function in (("chown", _keep_owner), ("lchown", _keep_owner), ("fchown", _keep_owner), ("umask", _umask)):
        if not hasattr(os, name):
            setattr(os, name, function)
    sys.modules.setdefault("pwd", pwd_module())
    sys.modules.setdefault("grp", grp_module())


def _keep_owner(path, uid, gid, *, dir_fd=None, follow_symlinks=True):
    """Give a file to root, whose it is."""
    if uid not in (-1, 0) or gid not in (-1, 0):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)


def _umask(mask):
    """The usual mask, which stays as it is."""
    return 0o022


def pwd_module() -> types.ModuleType:
    """A `pwd` that knows root."""
    module = types.ModuleType("pwd", "Users: root is all there is.")
    module.struct_passwd = Passwd
    module.getpwnam = _lookup("getpwnam(): name not found", {"root": ROOT_USER})
    module.getpwuid = _lookup("getpwuid(): uid not found", {0: ROOT_USER})
    module.getpwall = lambda: [ROOT_USER]
    return module


def grp_module() -> types.ModuleType:
    """A `grp` that knows root's."""
    module = types.ModuleType("grp", "Groups: root's is all there is.")
    module.struct_group = Group
    module.getgrnam = _lookup("getgrnam(): name not found", {"root": ROOT_GROUP})
    module.getgrgid = _lookup("getgrgid(): gid not found", {0: ROOT_GROUP})
    module.getgrall = lambda: [ROOT_GROUP]
    return module


def _lookup(complaint, known):
    def find(key):
        try:
            return known[key]
        except KeyError:
            raise KeyError(f"{complaint}: {key!r}") from None

    return find
