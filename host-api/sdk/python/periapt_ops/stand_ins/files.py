"""Files: where WASI's answers are not those that programs expect.

`os.open(path, os.O_CREAT | os.O_EXCL)` is how programs make a lock or an empty file with the right mode; `ops` does so,
and so do libraries. WASI refuses to create a file that is opened for reading alone, POSIX allows it. So code that creates a
file opens it for writing as well.

A hook has `/charm`, `/tmp` and its storage, and nothing beside them: no root directory, no `/etc`. Whatever would make
something there finds no directory, and `os.makedirs` says so of `/`. Here it is an OSError of the path that was given,
with EROFS, as `/charm` answers: the whole world but `/tmp` and storage is read-only. What is only read there is not
found, as it is. The directories above those places are there, as on a machine, though nothing can be made in them: making one
says that it exists, and so does `os.stat`.

`os.chmod` of a file that is not there does nothing in WASI; here it is not found.
"""

from __future__ import annotations

import builtins
import errno
import functools
import io
import os
import posixpath
from collections.abc import Callable
from typing import Any

#: The flags of `os.open` by which a file is written: in WASI reading has a bit of its own, and O_RDWR has both.
WRITING = (os.O_WRONLY | os.O_RDWR) & ~os.O_RDONLY

#: Where storage lies by default.
STORAGE = "/var/lib/juju/storage"

#: The directories above what a hook has.
_above = {"/"}

#: What a call was given: by position, and by name.
_Arguments = tuple[Any, ...]
_Options = dict[str, Any]


def install() -> None:
    """Put it in the place of the real one."""
    os.open = refusing(creating(os.open), "path", when=_creates)
    builtins.open = io.open = refusing(io.open, "file", when=_writes)
    os.stat, os.lstat = seeing(os.stat), seeing(os.lstat)
    os.mkdir = keeping(refusing(os.mkdir, "path"))
    os.makedirs = refusing(os.makedirs, "name")
    os.symlink = refusing(os.symlink, "src", "dst")
    for name in ("link", "rename", "replace"):
        setattr(os, name, refusing(getattr(os, name), "src", "dst", when=_has_source))
    os.chmod = finding(os.chmod)


def know(metadata: object) -> None:
    """Learn from a charm's metadata where its storage lies."""
    declared = metadata.get("storage") if isinstance(metadata, dict) else None
    for name, storage in (declared if isinstance(declared, dict) else {}).items():
        said = storage.get("location") if isinstance(storage, dict) else None
        place = posixpath.normpath(said if isinstance(said, str) else f"{STORAGE}/{name}/0")
        while place.startswith("/") and place.strip("/"):
            place = posixpath.dirname(place)
            _above.add(place)


def is_above(path: Any) -> bool:
    """Whether a path is that of a directory above storage, or of the root."""
    return isinstance(path, (str, bytes, os.PathLike)) and posixpath.abspath(os.fsdecode(path)) in _above


def seeing(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """`os.stat` that finds the directories above storage."""

    @functools.wraps(real)
    def stat(path, *arguments, **options):
        try:
            return real(path, *arguments, **options)
        except FileNotFoundError:
            if not is_above(path) or options.get("dir_fd") is not None:
                raise
        # Like the one directory that is always there and cannot be changed either.
        return real("/charm")

    return stat


def keeping(real: Callable[..., None]) -> Callable[..., None]:
    """`os.mkdir` that says of the directories above storage that they exist."""

    @functools.wraps(real)
    def mkdir(path, *arguments, **options):
        if is_above(path) and options.get("dir_fd") is None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return real(path, *arguments, **options)

    return mkdir


def creating(real: Callable[..., int]) -> Callable[..., int]:
    """`os.open` that opens what it creates for writing, too."""

    @functools.wraps(real)
    def open(path, flags, mode=0o777, *, dir_fd=None):
        if flags & os.O_CREAT and not flags & WRITING:
            flags |= os.O_RDWR
        return real(path, flags, mode, dir_fd=dir_fd)

    return open


def refusing(
    real: Callable[..., Any], *names: str, when: Callable[[_Arguments, _Options], Any] = lambda arguments, options: True
) -> Callable[..., Any]:
    """A function that makes something, and raises OSError with EROFS where nothing can be made.

    `names`: what its paths are called, which are its first arguments; it makes the last one. `when`: whether a call would.
    """

    @functools.wraps(real)
    def make(*arguments, **options):
        try:
            return real(*arguments, **options)
        except OSError as error:
            # `os.makedirs` is told the second one by `os.mkdir`, of a directory above.
            if error.errno not in (errno.ENOENT, errno.EROFS):
                raise
            paths = [_given(arguments, options, place, name) for place, name in enumerate(names)]
            if not when(arguments, options) or not is_outside(paths[-1]) or any(name.endswith("dir_fd") for name in options):
                raise
            # As OSError takes them: the second path comes after a number that only Windows has.
            told = paths if len(paths) == 1 else [paths[0], None, paths[1]]
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), *told)

    return make


def is_outside(path: Any) -> bool:
    """Whether a path is below nothing that there is, so that nothing can ever be made there."""
    if not isinstance(path, (str, bytes, os.PathLike)):
        return False
    place = posixpath.abspath(os.fsdecode(path))
    while place not in ("/", "//"):
        if place not in _above and os.path.lexists(place):
            return False
        place = posixpath.dirname(place)
    return True


def finding(real: Callable[..., None]) -> Callable[..., None]:
    """`os.chmod` that looks whether there is what it is to change."""

    @functools.wraps(real)
    def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
        if not isinstance(path, int):
            os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        return real(path, mode)

    return chmod


def _given(arguments: _Arguments, options: _Options, place: int, name: str, otherwise: Any = None) -> Any:
    return arguments[place] if len(arguments) > place else options.get(name, otherwise)


def _creates(arguments: _Arguments, options: _Options) -> bool:
    return bool(_given(arguments, options, 1, "flags", 0) & os.O_CREAT)


def _writes(arguments: _Arguments, options: _Options) -> bool:
    return not {"w", "a", "x"}.isdisjoint(_given(arguments, options, 1, "mode", "r"))


def _has_source(arguments: _Arguments, options: _Options) -> bool:
    return os.path.lexists(_given(arguments, options, 0, "src"))
