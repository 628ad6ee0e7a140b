"""Files of the charm's, for modules that read them while the component is built.

The charm's files lie in a directory of the packer's then, and in `/charm` for a hook. So for that time each function of
Python's that takes a path reads from the one what it is asked of the other: code that asks for a directory's entries, a
link's target or the working directory is told places in `/charm`, which is what modules keep. As in a hook, the charm's
files cannot be changed.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import io
import os
import posixpath
import tokenize
from collections.abc import Iterator
from typing import Any

from .location import CHARM, Building, is_charms
from .stand_ins.files import WRITING

#: What reads: each takes a path first.
READERS = ("stat", "lstat", "listdir", "access", "readlink")

#: What changes files or makes them, with how many paths it takes first.
WRITERS = {
    "chmod": 1, "link": 2, "mkdir": 1, "remove": 1, "rename": 2, "replace": 2, "rmdir": 1, "symlink": 2, "truncate": 1,
    "unlink": 1, "utime": 1,
}  # fmt: skip


@contextlib.contextmanager
def files_in_place(building: Building) -> Iterator[None]:
    """Let reading from `/charm` read the packer's directory."""
    view = _View(building)
    places: list[tuple[Any, str, Any]] = [(os, name, view.reader(getattr(os, name))) for name in READERS]
    places += [(os, name, view.writer(getattr(os, name), count)) for name, count in WRITERS.items()]
    places += [
        (os, "open", view.opener(os.open, view.writes_by_flags)),
        (os, "scandir", view.scandir(os.scandir)),
        (os, "getcwd", view.getcwd(os.getcwd)),
        (os, "getcwdb", view.getcwdb(os.getcwdb)),
        (os, "chdir", view.chdir(os.chdir)),
    ]
    opened = view.opener(builtins.open, view.writes_by_mode)
    places += [(builtins, "open", opened), (io, "open", opened), (io, "open_code", view.reader(io.open_code))]
    # It takes its own, so that nobody's `open` is in its way.
    places += [(tokenize, "_builtin_open", opened)]
    kept = [(place, name, getattr(place, name)) for place, name, _ in places]
    for place, name, function in places:
        setattr(place, name, function)
    try:
        yield
    finally:
        view.is_over = True
        for place, name, function in kept:
            setattr(place, name, function)


class _View:
    """The charm's files as a hook sees them.

    A module that is imported now may keep a function for ever (`from os import listdir`): when the time is over, it is
    the function that it stands for.
    """

    def __init__(self, building: Building):
        self.is_over = False
        self._building = building
        self._working_directory = CHARM

    def reader(self, function):
        """A function that reads what its first argument names."""

        # `os.listdir` needs none.
        @functools.wraps(function)
        def read(path=".", *arguments, **options):
            if self.is_over or options.get("dir_fd") is not None:
                return function(path, *arguments, **options)
            with self._told(path) as place:
                return function(place, *arguments, **options)

        return read

    def opener(self, function, writes):
        """A function that opens what its first argument names, to read if it is the charm's."""

        @functools.wraps(function)
        def open(file, *arguments, **options):
            if self.is_over or options.get("dir_fd") is not None:
                return function(file, *arguments, **options)
            with self._told(file) as place:
                if self._is_charms(file) and writes(*arguments, **options):
                    raise OSError(errno.EROFS, os.strerror(errno.EROFS), file)
                return function(place, *arguments, **options)

        return open

    def writer(self, function, count):
        """A function that changes what its first arguments name, if it is not the charm's."""

        @functools.wraps(function)
        def write(*arguments, **options):
            if not self.is_over:
                for path in (*arguments[:count], *options.values()):
                    if self._is_charms(path):
                        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
            return function(*arguments, **options)

        return write

    def scandir(self, function):
        """`os.scandir` that reads all entries at once: no open directory is left for the snapshot."""

        @functools.wraps(function)
        def scandir(path="."):
            if self.is_over:
                return function(path)
            with self._told(path) as place, function(place) as entries:
                return _Entries([entry if place is path else _Entry(entry, os.path.join(path, entry.name)) for entry in entries])

        return scandir

    def getcwd(self, function):
        """`os.getcwd`: the charm's directory, as in a hook."""
        return functools.wraps(function)(lambda: function() if self.is_over else self._working_directory)

    def getcwdb(self, function):
        """`os.getcwdb`."""
        return functools.wraps(function)(lambda: function() if self.is_over else os.fsencode(self._working_directory))

    def chdir(self, function):
        """`os.chdir`, as far as other functions of Python's see it."""

        @functools.wraps(function)
        def chdir(path):
            if self.is_over:
                return function(path)
            if not os.path.isdir(path):
                os.stat(path)
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            self._working_directory = posixpath.normpath(self._absolute(path))

        return chdir

    @staticmethod
    def writes_by_flags(flags, *arguments, **options):
        """Whether `os.open` is to write."""
        return flags & (WRITING | os.O_CREAT | os.O_TRUNC)

    @staticmethod
    def writes_by_mode(mode="r", *arguments, **options):
        """Whether `open` is to write."""
        return not set("wax+").isdisjoint(mode)

    def _is_charms(self, path) -> bool:
        return isinstance(path, (str, bytes, os.PathLike)) and is_charms(posixpath.normpath(self._absolute(path)))

    def _absolute(self, path) -> str:
        return posixpath.join(self._working_directory, os.fsdecode(path))

    def _now(self, path):
        """Where a path leads at present: the path itself, if it leads there."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            return path
        given = os.fspath(path)
        absolute = self._absolute(given)
        now = self._building.now(absolute)
        if now == os.fsdecode(given):
            return path
        return os.fsencode(now) if isinstance(given, bytes) else now

    @contextlib.contextmanager
    def _told(self, path) -> Iterator[Any]:
        """The place of a path; errors name the path."""
        place = self._now(path)
        try:
            yield place
        except OSError as error:
            if place is not path and error.filename == place:
                error.filename = path
            raise


class _Entries:
    """The entries of a directory, as `os.scandir` gives them."""

    def __init__(self, entries):
        self._rest = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._rest)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Give no more."""
        self._rest = iter(())


class _Entry:
    """An entry of one of the charm's directories, as `os.DirEntry`."""

    def __init__(self, entry: os.DirEntry, path):
        self._entry = entry
        self.name, self.path = entry.name, path
        # For a hook, which finds the file elsewhere.
        self.is_dir, self.is_file, self.is_symlink, self.inode = entry.is_dir, entry.is_file, entry.is_symlink, entry.inode

    def stat(self, *, follow_symlinks=True):
        """Look at it, where it is at that time."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"
