"""`/etc/resolv.conf`: charms read the name server there, and write it into the configuration of their workloads.

A hook asks no name server. The file is the one that the unit's containers have (`Gate` in `runtime/pod` writes it), and a charm
without containers has none. It can be read by `open` and what builds on it, and `os.stat` finds it.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
import posixpath
import stat
from collections.abc import Callable
from typing import IO, Any

#: Where the file is.
PATH = "/etc/resolv.conf"

#: What it says, in every container.
CONTENT = b"nameserver 198.18.0.1\noptions timeout:5 attempts:2\n"

#: Whether the charm has containers.
_is_there = False


def install() -> None:
    """Put it in the place of the real one."""
    builtins.open = io.open = opening(io.open)
    os.stat, os.lstat = seeing(os.stat), seeing(os.lstat)


def know(metadata: object) -> None:
    """Learn from a charm's metadata whether it has containers."""
    global _is_there
    _is_there = isinstance(metadata, dict) and isinstance(metadata.get("containers"), dict) and bool(metadata["containers"])


def is_it(path: Any) -> bool:
    """Whether a path is that of the file, if the charm has it."""
    return _is_there and isinstance(path, (str, bytes, os.PathLike)) and posixpath.abspath(os.fsdecode(path)) == PATH


def opening(real: Callable[..., IO[Any]]) -> Callable[..., IO[Any]]:
    """`open` that finds the file."""

    @functools.wraps(real)
    def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *others, **options):
        try:
            return real(file, mode, buffering, encoding, errors, newline, *others, **options)
        except FileNotFoundError:
            if not is_it(file) or not set(mode) <= set("rbt"):
                raise
        content = io.BytesIO(CONTENT)
        return content if "b" in mode else io.TextIOWrapper(content, io.text_encoding(encoding), errors, newline)

    return open


def seeing(real: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
    """`os.stat` that finds the file."""

    @functools.wraps(real)
    def see(path, *arguments, **options):
        try:
            return real(path, *arguments, **options)
        except FileNotFoundError:
            if not is_it(path) or options.get("dir_fd") is not None:
                raise
        mode = stat.S_IFREG | stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
        return os.stat_result((mode, 0, 0, 1, 0, 0, len(CONTENT), 0, 0, 0))

    return see
